/* Readers of memusage's data and of the sampler's files, and detection of their kinds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/input.h"

#define RECORDS(...) (const struct memusage_record[]){__VA_ARGS__}

static char *encode(const struct memusage_record *r, size_t count)
{
	char *data = xmalloc(count * MEMUSAGE_RECORD_SIZE + 1);

	for (size_t i = 0; i < count; i++)
		memcpy(data + i * MEMUSAGE_RECORD_SIZE, &r[i], MEMUSAGE_RECORD_SIZE);
	return data;
}

static struct memusage_file *parse_memusage(const struct memusage_record *r, size_t count)
{
	struct memusage_file *f = NULL;
	char *why = NULL;

	assert_int_equal(memusage_file_parse(encode(r, count), count * MEMUSAGE_RECORD_SIZE, &f, &why), 0);
	return f;
}

static void test_memusage(void **state)
{
	struct memusage_file *f = parse_memusage(
		RECORDS({0, 900, 100}, {700, 300, 200}, {10, 100, 110}, {700, 200, 120}, {5, 300, 115}), 5);

	assert_int_equal(f->count, 3);
	assert_int_equal(f->record[1].heap, 700);
	assert_int_equal(f->record[2].stack, 300);
	assert_int_equal(f->record[2].time, 115);
	assert_int_equal(f->peak_heap, 700);
	assert_int_equal(f->peak_stack, 300);
	assert_int_equal(f->peak_total, 900);
	assert_int_equal(f->start, 100);
	assert_int_equal(f->end, 200);
	assert_true(f->is_complete);
	memusage_file_free(f);
}

static void test_memusage_killed(void **state)
{
	struct memusage_file *f = parse_memusage(RECORDS({0, 0, 100}, {0, 0, 100}, {10, 100, 110}, {7, 120, 190}), 4);

	assert_false(f->is_complete);
	assert_int_equal(f->peak_heap, 10);
	assert_int_equal(f->peak_stack, 120);
	assert_int_equal(f->peak_total, 127);
	assert_int_equal(f->end, 190);
	memusage_file_free(f);
	f = parse_memusage(RECORDS({0, 0, 1}, {0, 0, 2}), 2);
	assert_int_equal(f->count, 0);
	assert_true(f->is_complete);
	memusage_file_free(f);
}

static void check_count(const struct memusage_record *r, size_t count, size_t expected)
{
	struct memusage_file *f = parse_memusage(r, count);

	assert_int_equal(f->count, expected);
	memusage_file_free(f);
}

static void test_memusage_duplicates(void **state)
{
	check_count(RECORDS({0, 1, 1}, {1, 1, 9}, {1, 1, 2}, {1, 1, 2}), 4, 1);
	check_count(RECORDS({0, 1, 1}, {1, 1, 9}, {1, 1, 2}, {2, 1, 3}, {1, 1, 2}, {2, 1, 3}), 6, 2);
	/* An odd number of records cannot end in a copy. */
	check_count(RECORDS({0, 1, 1}, {1, 1, 9}, {1, 1, 2}, {2, 1, 3}, {2, 1, 3}), 5, 3);
	check_count(RECORDS({0, 1, 1}, {1, 1, 9}, {1, 1, 2}, {2, 1, 3}), 4, 2);
}

static void check_bad_memusage(const char *bytes, size_t size, const char *part)
{
	_cleanup_free_ char *why = NULL;
	struct memusage_file *f = NULL;

	assert_int_equal(memusage_file_parse(xmemdup(bytes, size), size, &f, &why), -EINVAL);
	assert_non_null(strstr(why, part));
	assert_null(f);
}

static void test_memusage_bad(void **state)
{
	static char bytes[100];

	check_bad_memusage(bytes, 24, "24 bytes");
	check_bad_memusage(bytes, 71, "71 bytes");
	check_bad_memusage(bytes, 73, "24-byte records");
	bytes[0] = 1;
	check_bad_memusage(bytes, 72, "first record");
	bytes[0] = 0;
}

static int parse_samples(const char *text, struct samples_file **out, char **why)
{
	return samples_file_parse(xstrdup(text), strlen(text), out, why);
}

static void test_samples(void **state)
{
	struct samples_file *f = NULL;
	char *why = NULL;

	assert_int_equal(parse_samples("time\tpid\tVmSize\tVmRSS\n0.000\t7\t100\t50\n0.1\t8\t-\t60\n0.2\t7\t1", &f, &why), 0);
	assert_int_equal(f->row_count, 2);
	assert_int_equal(f->field_count, 2);
	assert_int_equal(samples_file_field(f, "VmRSS"), 1);
	assert_true(samples_file_field(f, "VmHWM") == SIZE_MAX);
	assert_true(f->time[1] == 0.1);
	assert_int_equal(f->pid[1], 8);
	assert_int_equal(samples_file_bytes(f, 0, 1), 51200);
	assert_true(samples_file_bytes(f, 1, 0) == SAMPLES_NONE);
	samples_file_free(f);
}

static void check_bad_samples(const char *text, const char *expected)
{
	_cleanup_free_ char *why = NULL;
	struct samples_file *f = NULL;

	assert_int_equal(parse_samples(text, &f, &why), -EINVAL);
	assert_string_equal(why, expected);
	assert_null(f);
}

static void test_samples_bad(void **state)
{
	check_bad_samples("", "Line 1: expected a header line");
	check_bad_samples("pid\ttime\tx\n", "Line 1: expected \"time\" and \"pid\" as the first columns");
	check_bad_samples("time\n", "Line 1: expected \"time\" and \"pid\" as the first columns");
	check_bad_samples("time\tpid\n", "Line 1: no fields after \"time\" and \"pid\"");
	check_bad_samples("time\tpid\tVmRSS\n1\t2\t3\nx\t2\t3\n", "Line 3: no time in seconds: 'x'");
	check_bad_samples("time\tpid\tVmRSS\n1.2.3\t2\t3\n", "Line 2: no time in seconds: '1.2.3'");
	check_bad_samples("time\tpid\tVmRSS\n1\t-2\t3\n", "Line 2: no process: '-2'");
	check_bad_samples("time\tpid\tVmRSS\n1\t2\n", "Line 2: no value for VmRSS");
	check_bad_samples("time\tpid\tVmRSS\n1\t2\t3kB\n", "Line 2: VmRSS is not a number: '3kB'");
	check_bad_samples("time\tpid\tVmRSS\n1\t2\t3\t4\n", "Line 2: more values than columns");
	check_bad_samples("time\tpid\tVmRSS\n1\t2\t99999999999999999999\n",
			  "Line 2: VmRSS is not a number: '99999999999999999999'");
}

static void test_kinds(void **state)
{
	static const char zero[48];

	assert_int_equal(input_kind(zero, 48), INPUT_MEMUSAGE);
	assert_int_equal(input_kind(zero, 9), INPUT_MEMUSAGE);
	assert_int_equal(input_kind(zero, 7), INPUT_MASSIF);
	assert_int_equal(input_kind("time\tpid\n", 9), INPUT_SAMPLES);
	assert_int_equal(input_kind("time_unit: B\n", 13), INPUT_MASSIF);
	assert_int_equal(input_kind("desc: x\n", 8), INPUT_MASSIF);
	assert_int_equal(input_kind("", 0), INPUT_MASSIF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memusage),       cmocka_unit_test(test_memusage_killed),
		cmocka_unit_test(test_memusage_duplicates), cmocka_unit_test(test_memusage_bad),
		cmocka_unit_test(test_samples),        cmocka_unit_test(test_samples_bad),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests_name("data files", tests, NULL, NULL);
}
