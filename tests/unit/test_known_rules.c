/* Rules by address and kind of look-up, many of them, compared with a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "unwind/cfi.h"

#define COUNT 5000u

/* Neighbours, and addresses far apart that share low bits. */
static uint64_t address(uint32_t i)
{
	return i % 2 ? i : (uint64_t)i << 32;
}

static void test_many(void **state)
{
	struct rule_cache k = {0};

	assert_null(rule_cache_find(&k, 0, false));
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_null(rule_cache_find(&k, address(i), i % 3 == 0));
		rule_cache_add(&k, &(struct cached_rule){.vaddr = address(i),
							 .is_exact = i % 3 == 0,
							 .is_guess = i % 5 == 0,
							 .rule.cfa_offset = (int32_t)i});
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct cached_rule *found = rule_cache_find(&k, address(i), i % 3 == 0);
		assert_non_null(found);
		assert_int_equal(found->rule.cfa_offset, i);
		assert_int_equal(found->is_guess, i % 5 == 0);
		assert_null(rule_cache_find(&k, address(i), i % 3 != 0));
	}
	assert_int_equal(k.rules.index.count, COUNT);
	rule_cache_deinit(&k);
	assert_null(rule_cache_find(&k, address(1), false));
}

/* An address has a rule of each kind, even where both collide in a small table. */
static void test_both_kinds(void **state)
{
	for (uint32_t round = 0; round < 200; round++) {
		struct rule_cache k = {0};
		for (uint32_t i = 0; i < 100; i++)
			rule_cache_add(&k, &(struct cached_rule){.vaddr = 100 * round + i / 2,
								 .is_exact = i % 2,
								 .rule.cfa_offset = (int32_t)i});
		for (uint32_t i = 0; i < 100; i++)
			assert_int_equal(rule_cache_find(&k, 100 * round + i / 2, i % 2)->rule.cfa_offset,
					 i);
		rule_cache_deinit(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many), cmocka_unit_test(test_both_kinds)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
