/*
 * Call sites between snapshots with trees: unchanged sites keep their size, changed ones share the
 * rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/chart/massif_sites.h"

#define COUNT 4

static struct massif_snapshot snapshots[COUNT];
static uint64_t bytes[COUNT * MASSIF_SITES_MAX];
static const double x[COUNT] = {0, 10, 20, 30};

/* @heap: of each snapshot. Trees with two sites are at 0 and, unless @last is NULL, at 2. */
static void check(const uint64_t heap[COUNT], const uint64_t first[2], const uint64_t last[2],
		  size_t at, const double expected[3])
{
	struct massif_file file = {.snapshot = snapshots, .snapshot_count = COUNT};
	struct massif_sites sites = {.count = 2, .bytes = bytes};
	double found[MASSIF_SITES_MAX + 1];

	memset(snapshots, 0, sizeof(snapshots));
	for (size_t i = 0; i < COUNT; i++)
		snapshots[i].heap = heap[i];
	snapshots[0].root = 1;
	snapshots[2].root = last ? 1 : 0;
	memcpy(bytes, first, 2 * sizeof(*bytes));
	if (last)
		memcpy(&bytes[2 * MASSIF_SITES_MAX], last, 2 * sizeof(*bytes));
	massif_interpolate(&file, &sites, x, at, found);
	assert_float_equal(found[0], expected[0], 1e-6);
	assert_float_equal(found[1], expected[1], 1e-6);
	assert_float_equal(found[MASSIF_OTHER_SITES], expected[2], 1e-6);
}

static void test_between(void **state)
{
	/* the second site grows, the first and the rest stay */
	check((uint64_t[]){300, 400, 500, 0}, (uint64_t[]){100, 100}, (uint64_t[]){100, 300}, 1,
	      (double[]){100, 200, 100});
	/* more in between: of both, for both have grown from nothing, the second by three times */
	check((uint64_t[]){300, 800, 500, 0}, (uint64_t[]){100, 100}, (uint64_t[]){100, 300}, 1,
	      (double[]){180, 440, 180});
	/* none has ever shrunk: all are scaled down */
	check((uint64_t[]){300, 200, 500, 0}, (uint64_t[]){100, 100}, (uint64_t[]){100, 300}, 1,
	      (double[]){50, 100, 50});
	/* only the second shrinks: it is reduced as far as possible */
	check((uint64_t[]){500, 250, 300, 0}, (uint64_t[]){100, 300}, (uint64_t[]){100, 100}, 1,
	      (double[]){100, 50, 100});
	check((uint64_t[]){500, 100, 300, 0}, (uint64_t[]){100, 300}, (uint64_t[]){100, 100}, 1,
	      (double[]){50, 0, 50});
}

static void test_at_trees(void **state)
{
	check((uint64_t[]){300, 1, 500, 1}, (uint64_t[]){100, 50}, (uint64_t[]){100, 300}, 0,
	      (double[]){100, 50, 150});
	check((uint64_t[]){300, 1, 500, 1}, (uint64_t[]){100, 50}, (uint64_t[]){100, 300}, 2,
	      (double[]){100, 300, 100});
	/* an incorrect file: sites larger than the heap */
	check((uint64_t[]){120, 1, 500, 1}, (uint64_t[]){100, 50}, NULL, 0,
	      (double[]){100, 20, 0});
}

static void test_after_the_last_tree(void **state)
{
	check((uint64_t[]){300, 600, 150, 0}, (uint64_t[]){100, 50}, NULL, 1,
	      (double[]){100, 50, 450});
	check((uint64_t[]){300, 600, 150, 0}, (uint64_t[]){100, 50}, NULL, 2,
	      (double[]){50, 25, 75});
	check((uint64_t[]){300, 600, 150, 0}, (uint64_t[]){100, 50}, NULL, 3,
	      (double[]){0, 0, 0});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_at_trees),
		cmocka_unit_test(test_after_the_last_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
