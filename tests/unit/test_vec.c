/* Sorting arrays and merging their neighbours: base/alloc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"

struct row {
	const char *name; /* the first member */
	int sum, rows;
};

static bool merge_rows(struct row *to, struct row *from)
{
	if (text_compare(to, from) != 0)
		return false;
	to->sum += from->sum;
	to->rows++;
	return true;
}

static void rows_with_one_name_become_one(void **state)
{
	static const struct row rows[] = {{"b", 1, 1}, {"a", 2, 1}, {"c", 4, 1}, {"a", 8, 1}, {"b", 16, 1},
					  {"a", 32, 1}};
	static const struct row want[] = {{"a", 42, 3}, {"b", 17, 2}, {"c", 4, 1}};
	VEC(struct row) v = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		*vec_add(&v) = rows[i];
	vec_sort(&v, text_compare);
	vec_merge(&v, merge_rows);
	assert_int_equal(v.count, ARRAY_SIZE(want));
	for (size_t i = 0; i < v.count; i++) {
		assert_string_equal(v.data[i].name, want[i].name);
		assert_int_equal(v.data[i].sum, want[i].sum);
		assert_int_equal(v.data[i].rows, want[i].rows);
	}
	vec_deinit(&v);
}

static void equal_neighbours_are_dropped_and_only_they(void **state)
{
	VEC(const char *) v = {0};

	*vec_add(&v) = "x";
	*vec_add(&v) = "y";
	*vec_add(&v) = "y";
	*vec_add(&v) = "x";
	vec_merge(&v, !text_compare);
	assert_int_equal(v.count, 3);
	vec_sort(&v, text_compare);
	vec_merge(&v, !text_compare);
	assert_int_equal(v.count, 2);
	assert_string_equal(v.data[0], "x");
	assert_string_equal(v.data[1], "y");
	vec_deinit(&v);
}

static void an_empty_array_stays_empty(void **state)
{
	VEC(const char *) v = {0};

	vec_sort(&v, text_compare);
	vec_merge(&v, !text_compare);
	assert_int_equal(v.count, 0);
	assert_null(v.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_with_one_name_become_one),
		cmocka_unit_test(equal_neighbours_are_dropped_and_only_they),
		cmocka_unit_test(an_empty_array_stays_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
