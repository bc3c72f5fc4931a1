/*
 * Ticks and numbers on axes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/chart/axis.h"

static void check_text(enum axis_kind kind, double value, const char *expected)
{
	char text[AXIS_TEXT_SIZE];

	axis_text(kind, value, text);
	assert_string_equal(text, expected);
}

static void test_text(void **state)
{
	check_text(AXIS_BYTES, 0, "0 B");
	check_text(AXIS_BYTES, 1023, "1023 B");
	check_text(AXIS_BYTES, 1024, "1.00 KiB");
	check_text(AXIS_BYTES, 1536, "1.50 KiB");
	check_text(AXIS_BYTES, 11.26 * 1048576, "11.3 MiB");
	check_text(AXIS_BYTES, 340.6 * 1048576, "341 MiB");
	check_text(AXIS_BYTES, 18446744073709551615.0, "16.0 EiB");
	check_text(AXIS_MILLISECONDS, 999, "999 ms");
	check_text(AXIS_MILLISECONDS, 1530, "1.53 s");
	check_text(AXIS_MILLISECONDS, 119999, "120 s");
	check_text(AXIS_MILLISECONDS, 150000, "2.50 min");
	check_text(AXIS_MILLISECONDS, 9000000, "2.50 h");
	check_text(AXIS_MILLISECONDS, 259200000, "3.00 d");
	check_text(AXIS_INSTRUCTIONS, 9999, "9999");
	check_text(AXIS_INSTRUCTIONS, 1.11e9, "1.11 G");
	check_text(AXIS_PERCENT, 12, "12 %");
}

static void check_step(enum axis_kind kind, double max, unsigned count, double expected)
{
	struct axis axis = {kind, max};

	assert_true(axis_step(&axis, count) == expected);
}

static void test_steps(void **state)
{
	check_step(AXIS_BYTES, 1, 8, 1);
	check_step(AXIS_BYTES, 8, 8, 1);
	check_step(AXIS_BYTES, 9, 8, 2);
	check_step(AXIS_BYTES, 11.3 * 1048576, 8, 2097152);
	check_step(AXIS_MILLISECONDS, 47000, 8, 10000);
	check_step(AXIS_MILLISECONDS, 0.5, 5, 0.1);
	check_step(AXIS_MILLISECONDS, 125000, 8, 30000);
	check_step(AXIS_MILLISECONDS, 3600000, 8, 600000);
	check_step(AXIS_MILLISECONDS, 86400000, 8, 10800000);
	check_step(AXIS_MILLISECONDS, 864000000, 6, 172800000);
	check_step(AXIS_CALLS, 3, 10, 1);
	check_step(AXIS_CALLS, 860000, 9, 100000);
	check_step(AXIS_PERCENT, 100, 6, 20);
}

/* Never more ticks than requested, nor fewer than a third, except where steps have a minimum. */
static void test_counts(void **state)
{
	for (int kind = AXIS_BYTES; kind <= AXIS_CALLS; kind++)
		for (double max = 10; max < 1e18; max *= 1.37)
			for (unsigned count = 3; count < 15; count++) {
				struct axis axis = {(enum axis_kind)kind, max};
				double step = axis_step(&axis, count), ticks = max / step;
				bool is_smallest = step == 1 || (kind == AXIS_MILLISECONDS && step == 30000);

				assert_true(ticks <= count * (1 + 1e-9));
				assert_true(ticks >= count / 3.0 || is_smallest);
			}
}

static void check_label(enum axis_kind kind, double max, double step, double value, const char *expected)
{
	struct axis axis = {kind, max};
	char text[AXIS_TEXT_SIZE];

	axis_label(&axis, step, value, text);
	assert_string_equal(text, expected);
}

static void test_labels(void **state)
{
	check_label(AXIS_BYTES, 3 << 20, 512 << 10, 512 << 10, "0.5 MiB");
	check_label(AXIS_BYTES, 3 << 20, 512 << 10, 0, "0");
	check_label(AXIS_BYTES, 3 << 20, 256 << 10, 256 << 10, "0.25 MiB");
	check_label(AXIS_BYTES, 1100 << 10, 128 << 10, 256 << 10, "256 KiB");
	check_label(AXIS_BYTES, 1100 << 10, 128 << 10, 1 << 20, "1024 KiB");
	check_label(AXIS_BYTES, 1000, 128, 256, "256 B");
	check_label(AXIS_MILLISECONDS, 300000, 30000, 30000, "0.5 min");
	check_label(AXIS_MILLISECONDS, 900, 100, 200, "200 ms");
	check_label(AXIS_INSTRUCTIONS, 1.2e9, 1e8, 1e8, "0.1 G");
	check_label(AXIS_CALLS, 5000, 1000, 1000, "1000");
	check_label(AXIS_CALLS, 50000, 5000, 5000, "5 k");
	check_label(AXIS_PERCENT, 100, 20, 0, "0 %");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests_name("axis", tests, NULL, NULL);
}
