/*
 * The parser of /proc/PID/status: real text, missing lines, names that look like lines.
 */
#include "live/rss_poll.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct status_values parse(const char *text)
{
	struct status_values v;
	status_parse(text, strlen(text), STATUS_ALL, &v);
	return v;
}

static void test_real(void **state)
{
	struct status_values v = parse("Name:\tcat\nState:\tR (running)\nTgid:\t12\nVmPeak:\t    6080 kB\n"
				       "VmSize:\t    6076 kB\nVmHWM:\t    1804 kB\nVmRSS:\t    1800 kB\nRssAnon:\t"
				       "      92 kB\nThreads:\t3\n");
	assert_int_equal(v.state, 'R');
	assert_int_equal(v.value[STATUS_VMPEAK], 6080);
	assert_int_equal(v.value[STATUS_VMSIZE], 6076);
	assert_int_equal(v.value[STATUS_VMHWM], 1804);
	assert_int_equal(v.value[STATUS_VMRSS], 1800);
	assert_int_equal(v.value[STATUS_RSSANON], 92);
	assert_int_equal(v.value[STATUS_THREADS], 3);
	assert_true(v.value[STATUS_VMSWAP] == STATUS_NONE);
}

static void test_zombie(void **state)
{
	struct status_values v = parse("Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n");
	assert_int_equal(v.state, 'Z');
	assert_true(v.value[STATUS_VMRSS] == STATUS_NONE);
}

static void test_deceits(void **state)
{
	struct status_values v = parse("Name:\tVmRSS:\t7\nName:\t\\nVmRSS:\t8\n VmRSS:\t9\nXVmRSS:\t1\nVmRSSX:\t2\n");
	assert_true(v.value[STATUS_VMRSS] == STATUS_NONE);
	assert_true(parse("VmRSS:\n").value[STATUS_VMRSS] == STATUS_NONE);
	assert_true(parse("VmRSS: x").value[STATUS_VMRSS] == STATUS_NONE);
	assert_true(parse("VmRSS: 99999999999999999999").value[STATUS_VMRSS] == STATUS_NONE);
	assert_int_equal(parse("VmRSS: 5").value[STATUS_VMRSS], 5); /* cut off */
	assert_int_equal(parse("").state, 0);
	assert_int_equal(parse("State:").state, 0);
	struct status_values cut;
	status_parse("VmRSS: 123", 8, STATUS_ALL, &cut); /* not a byte beyond the size */
	assert_int_equal(cut.value[STATUS_VMRSS], 1);
}

static void test_wanted(void **state)
{
	static const char text[] = "State:\tS\nVmRSS:\t7\nVmData:\t8\nThreads:\t9\n";
	struct status_values v;
	status_parse(text, strlen(text), STATUS_BIT(STATUS_VMDATA) | STATUS_BIT(STATUS_VMRSS), &v);
	assert_int_equal(v.value[STATUS_VMRSS], 7);
	assert_int_equal(v.value[STATUS_VMDATA], 8);
	assert_true(v.value[STATUS_THREADS] == STATUS_NONE); /* not read so far */
	status_parse(text, strlen(text), STATUS_BIT(STATUS_VMSWAP) | STATUS_BIT(STATUS_THREADS), &v);
	assert_int_equal(v.value[STATUS_THREADS], 9);
}

static void test_names(void **state)
{
	for (enum status_field i = 0; i < STATUS_FIELDS; i++)
		assert_int_equal(status_field_find(status_field_names[i], strlen(status_field_names[i])), i);
	assert_int_equal(status_field_find("VmRS", 4), STATUS_FIELDS);
	assert_int_equal(status_field_find("", 0), STATUS_FIELDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real), cmocka_unit_test(test_zombie), cmocka_unit_test(test_deceits),
		cmocka_unit_test(test_names), cmocka_unit_test(test_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
