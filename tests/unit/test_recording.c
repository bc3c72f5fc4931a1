/* Recordings as files: what is written is read back, and a file may be truncated anywhere. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/recording_format.h"
#include "recording/recording_json.h"
#include "recording/recording_view.h"

struct file {
	char *data;
	size_t size, first_part; /* bytes to the end of the first group */
};

static void add_leaf(struct recording *r, uint64_t number, uint64_t bytes)
{
	const uint64_t row[LEAF_COLUMNS] = {
		[LEAF_NUMBER] = number, [LEAF_BYTES] = bytes, [LEAF_ALLOCATIONS] = 1};

	recording_add(r, RECORDING_LEAVES, row);
}

static void add_interval(struct recording *r, uint64_t shift, uint64_t i, uint64_t live)
{
	const uint64_t row[TIME_COLUMNS] = {
		[TIME_SHIFT] = shift, [TIME_INTERVAL] = i, [TIME_LIVE_BYTES] = live};

	recording_add(r, RECORDING_TIMELINE, row);
}

static void add_cell(struct recording *r, uint64_t leaf, uint64_t born, uint64_t died,
		     uint64_t bytes)
{
	const uint64_t row[CELL_COLUMNS] = {
		r->shift, leaf, born, died, bytes / 10, bytes, 0};

	recording_add(r, RECORDING_CELLS, row);
}

static void clear(struct recording *r)
{
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_truncate(r, (enum recording_table_id)id, 0);
}

static void put_tables(struct recording_out *out, const struct recording *r)
{
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_write_rows(out, r, (enum recording_table_id)id, 0);
	recording_write_sync(out);
}

/*
 * Two parts. The second one has intervals of twice the length: 30 bytes of interval 1, which was not
 * over, turn out to be 20; and 10 of 100 bytes of interval 0 were released in 1, now both 0.
 */
static struct file make_file(void)
{
	struct recording *r = recording_new();
	struct file file = {0};
	FILE *f = open_memstream(&file.data, &file.size);
	struct recording_out out = {.file = f};

	recording_write_head(&out, r);
	recording_set_meta(r, "pid", "7");
	add_leaf(r, 1, 130);
	add_interval(r, 0, 0, 100);
	add_interval(r, 0, 1, 120);
	add_cell(r, 0, 0, 0, 0);
	add_cell(r, 1, 0, 1023, 100);
	add_cell(r, 1, 0, 1, 10);
	add_cell(r, 1, 1, 1023, 30);
	recording_write_texts(&out, r, 1);
	put_tables(&out, r);
	fflush(f);
	file.first_part = file.size;
	clear(r);
	r->shift = 1;
	add_leaf(r, 1, 170);
	add_interval(r, 1, 0, 110);
	add_interval(r, 1, 1, 90);
	add_cell(r, 0, 0, 0, 0);
	add_cell(r, 1, 0, 1023, 110);
	add_cell(r, 1, 0, 1, 60);
	add_cell(r, 1, 1, 1023, 40);
	put_tables(&out, r);
	fclose(f);
	recording_free(r);
	return file;
}

static void expect_cell(const struct recording *r, size_t row, uint64_t born, uint64_t died,
			uint64_t bytes)
{
	assert_int_equal(recording_get(r, RECORDING_CELLS, row, CELL_BORN), born);
	assert_int_equal(recording_get(r, RECORDING_CELLS, row, CELL_DIED), died);
	assert_int_equal(recording_get(r, RECORDING_CELLS, row, CELL_BYTES), bytes);
}

static void expect_first(const struct recording *r)
{
	assert_string_equal(recording_meta(r, "pid"), "7");
	assert_int_equal(r->shift, 0);
	assert_int_equal(recording_rows(r, RECORDING_CELLS), 3);
	expect_cell(r, 0, 0, 1, 10);
	expect_cell(r, 1, 0, 1023, 90);
	expect_cell(r, 2, 1, 1023, 30);
}

static void expect_both(const struct recording *r)
{
	assert_int_equal(r->shift, 1);
	assert_int_equal(recording_get(r, RECORDING_LEAVES, 0, LEAF_BYTES), 170);
	assert_int_equal(recording_rows(r, RECORDING_TIMELINE), 2);
	assert_int_equal(recording_rows(r, RECORDING_CELLS), 3);
	expect_cell(r, 0, 0, 1, 60);
	expect_cell(r, 1, 0, 1023, 50);
	expect_cell(r, 2, 1, 1023, 40);
}

/* -- an inspection -- */

static void add_row(struct recording *r, enum recording_table_id id, const uint64_t *value)
{
	uint64_t row[RECORDING_MAX_COLUMNS] = {0};

	memcpy(row, value, recording_table_info[id].columns * sizeof(*row));
	recording_add(r, id, row);
}

#define ADD(r, id, ...) add_row(r, id, (uint64_t[RECORDING_MAX_COLUMNS]){__VA_ARGS__})

/* A recording of one leaf with an inspection of one arena; @heap: that of its cell. */
static struct file make_inspected(uint64_t heap)
{
	struct recording *r = recording_new();
	struct file file = {0};
	FILE *f = open_memstream(&file.data, &file.size);

	add_leaf(r, 1, 10);
	add_interval(r, 0, 0, 10);
	add_cell(r, 1, 0, 1023, 10);
	ADD(r, RECORDING_INSPECTION, 7, recording_string(r, "glibc 2.36"), 8192, 0, 1500, 1);
	ADD(r, RECORDING_RESIDENT, recording_string(r, "live"), 8192, 0);
	ADD(r, RECORDING_RESIDENT, recording_string(r, "new row"), 1, 2);
	ADD(r, RECORDING_ARENAS, 0x7000, 1, 1, 4096, 4096, 0, 3, 100, 50, 20, 1);
	ADD(r, RECORDING_HEAPS, 0, 0x7000, 0x8000);
	ADD(r, RECORDING_HEAP_CELLS, heap, 1, 100, 1);
	ADD(r, RECORDING_PINS, 1, 1);
	assert_int_equal(recording_write(f, r), 0);
	fclose(f);
	recording_free(r);
	return file;
}

static char *to_json(const struct recording *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	recording_inspection_write(f, r);
	fclose(f);
	return text;
}

static void inspected(void **state)
{
	static const char *const wanted[] = {
		"{\"time\":7,\"malloc\":\"glibc 2.36\",\"rss\":8192,\"swap\":0,\"stopped\":1.500,",
		"\"name\":[\"live\",\"new row\"]",
		"\"text\":[\"live heap blocks\",\"new row\"]",
		"\"resident\":[8192,1]",
		"\"heaps\":{\"arena\":[0],\n\"start\":[\"0x7000\"],\n\"end\":[\"0x8000\"]}",
		"\"cells\":{\"heap\":[0],\n\"pages\":[1],\n\"live\":[100],\n\"nearly_empty\":[1]}",
		"\"pins\":{\"leaf\":[0],\n\"nearly_empty_pages\":[1]}",
	};
	struct file file = make_inspected(0);
	struct recording *r = NULL;
	char *why = NULL;

	assert_int_equal(recording_read(file.data, file.size, &r, &why), 0);
	char *json = to_json(r);

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_non_null(strstr(json, wanted[i]));
	free(json);
	recording_free(r);
	free(file.data);
}

/* Each table alone may be absent; references are checked. */
static void bad_inspections(void **state)
{
	struct file file = make_inspected(1), plain = make_file();
	struct recording *r = NULL;
	char *why = NULL;

	assert_int_equal(recording_read(file.data, file.size, &r, &why), -EINVAL);
	assert_string_equal(why, "a reference leads nowhere");
	free(why);
	free(file.data);
	assert_int_equal(recording_read(plain.data, plain.size, &r, &why), 0);
	char *json = to_json(r);

	assert_string_equal(json, "null");
	free(json);
	recording_free(r);
	free(plain.data);
}

/* A copy says that it is one, if the end of its last group is there. */
static void copied(void **state)
{
	struct file file = make_file(), copy = {0};
	struct recording_out out = {.file = open_memstream(&copy.data, &copy.size)};

	fwrite(file.data, file.size, 1, out.file);
	recording_write_copy(&out);
	recording_write_sync(&out);
	fclose(out.file);
	for (size_t size = file.size; size <= copy.size; size++) {
		struct recording *r = NULL;
		char *why = NULL;

		assert_int_equal(recording_read(copy.data, size, &r, &why), 0);
		assert_int_equal(r->is_copy, size == copy.size);
		expect_both(r);
		recording_free(r);
	}
	free(file.data);
	free(copy.data);
}

static void cut_anywhere(void **state)
{
	struct file file = make_file();

	for (size_t size = 0; size <= file.size; size++) {
		struct recording *r = NULL;
		char *why = NULL;
		int rc = recording_read(file.data, size, &r, &why);

		assert_int_equal(rc == 0, size >= file.first_part);
		if (rc != 0 && size >= strlen(RECORDING_HEAD))
			assert_non_null(strstr(why, "not complete yet"));
		else if (rc != 0)
			assert_true(why && *why);
		else if (size < file.size)
			expect_first(r);
		else
			expect_both(r);
		free(why);
		recording_free(r);
	}
	free(file.data);
}

/*
 * A wrong bit is found, also in the name of a chunk: at most it makes a shorter file, by a wrong
 * size or at the end of the last part.
 */
static void changed_anywhere(void **state)
{
	struct file file = make_file();

	for (size_t bit = 0; bit < file.size * 8; bit++) {
		struct recording *r = NULL;
		char *why = NULL, mask = (char)(1 << bit % 8);

		file.data[bit / 8] ^= mask;
		if (recording_read(file.data, file.size, &r, &why) == 0)
			expect_first(r);
		else
			assert_true(!r && why && *why);
		file.data[bit / 8] ^= mask;
		free(why);
		recording_free(r);
	}
	free(file.data);
}

static void impossible_cells(void **state)
{
	static const struct {
		uint64_t born, died, bytes;
	} wrong[] = {{0, 1, 10}, {1, 0, 10}, {2, 1023, 10}, {512, 1023, 10}, {0, 600, 10}};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct recording *r = recording_new(), *out = NULL;
		char *data, *why = NULL;
		size_t size;
		FILE *f = open_memstream(&data, &size);

		add_leaf(r, 1, 10);
		add_interval(r, 0, 0, 10);
		add_interval(r, 0, 1, 10);
		add_cell(r, 1, wrong[i].born, wrong[i].died, wrong[i].bytes);
		assert_int_equal(recording_write(f, r), 0);
		fclose(f);
		assert_int_not_equal(recording_read(data, size, &out, &why), 0);
		assert_non_null(why);
		free(why);
		free(data);
		recording_free(r);
	}
}

/* Sums of lifetimes that the buckets do not allow, or that are missing, are not believed. */
static void lived(void **state)
{
	static const struct {
		uint64_t sum;
		bool is_known;
	} of[] = {{30, true}, {23, false}, {24, true}, {48, true}, {49, false}, {0, false},
		  {UINT64_MAX, false}, {UINT64_C(1) << 63, false}};

	for (size_t i = 0; i <= ARRAY_SIZE(of); i++) {
		struct recording *r = recording_new();

		add_leaf(r, 1, 130);
		add_leaf(r, 2, 130);
		/* 3 blocks of 8 to 16 us; the other leaf has no sum */
		recording_add(r, RECORDING_LIFETIMES, (const uint64_t[]){1, 4, 3});
		recording_add(r, RECORDING_LIFETIMES, (const uint64_t[]){2, 4, 3});
		if (i < ARRAY_SIZE(of))
			recording_add(r, RECORDING_LIVED, (const uint64_t[]){1, of[i].sum});
		double *sum = recording_lived(r);

		if (i < ARRAY_SIZE(of) && of[i].is_known)
			assert_true(sum[0] == (double)of[i].sum);
		else
			assert_true(isnan(sum[0]));
		assert_true(isnan(sum[1]));
		free(sum);
		recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied),
		cmocka_unit_test(inspected),
		cmocka_unit_test(bad_inspections),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(changed_anywhere),
		cmocka_unit_test(impossible_cells),
		cmocka_unit_test(lived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
