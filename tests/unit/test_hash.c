/*
 * A hash table against an array with the same elements, while random ones are added, removed and
 * found. Hashes collide often, and some are 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

#define KEYS 600

struct element {
	uint32_t key;
	uint64_t value;
};

struct table {
	HASH(struct element) all;
};

/* Runs of equal hashes, and the last slots, from which a search goes on at the first. */
static uint64_t hash_of(uint32_t key, unsigned round)
{
	switch (round % 4) {
	case 0:
		return hash_u64(key);
	case 1:
		return key / 7;
	case 2:
		return UINT64_MAX - key % 50;
	default:
		return (uint64_t)key << 32; /* the lower half is 0 */
	}
}

static void check(const struct table *t, const uint64_t *value, unsigned round)
{
	size_t count = 0, seen = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		const struct element *found = hash_find(&t->all, hash_of(key, round), e, e->key == key);

		assert_int_equal(found ? found->value : 0, value[key]);
		count += value[key] != 0;
	}
	for (size_t i = 0; hash_next(&t->all.index, &i); i++) {
		assert_int_equal(t->all.slot[i].value, value[t->all.slot[i].key]);
		seen++;
	}
	assert_int_equal(seen, count);
	assert_int_equal(t->all.index.count, count);
}

static void test_random(void **state)
{
	for (unsigned round = 0; round < 12; round++) {
		uint64_t value[KEYS] = {0};
		struct table t = {0};

		for (uint64_t step = 1; step < 2500; step++) {
			uint64_t random = hash_u64(step * 100 + round);
			uint32_t key = (uint32_t)(random % KEYS);
			struct element *found = hash_find(&t.all, hash_of(key, round), e, e->key == key);

			assert_int_equal(found != NULL, value[key] != 0);
			if (found && random >> 62)
				hash_remove(&t.all, found);
			else if (found)
				found->value = step;
			else
				*hash_add(&t.all, hash_of(key, round)) = (struct element){key, step};
			value[key] = found && random >> 62 ? 0 : step;
			if (step % 100 == 0)
				check(&t, value, round);
		}
		struct table copy = {0};

		hash_copy(&copy.all, &t.all);
		hash_deinit(&t.all);
		check(&copy, value, round);
		hash_deinit(&copy.all);
	}
}

static void test_empty(void **state)
{
	struct table t = {0}, copy = {0};
	size_t i = 0;

	assert_null(hash_find(&t.all, 0, e, e->key == 0));
	assert_false(hash_next(&t.all.index, &i));
	hash_copy(&copy.all, &t.all);
	assert_null(copy.all.slot);
	struct element *e = hash_add(&copy.all, 0);

	assert_int_equal(e->value, 0);
	hash_remove(&copy.all, e);
	assert_int_equal(copy.all.index.count, 0);
	hash_deinit(&copy.all);
	hash_deinit(&copy.all);
}

/* A removed element leaves zeros, which the next one at its place begins with. */
static void test_zeroed(void **state)
{
	struct table t = {0};

	for (uint64_t i = 0; i < 100; i++) {
		struct element *e = hash_add(&t.all, i);

		assert_true(e->key == 0 && e->value == 0);
		*e = (struct element){1, 1};
		hash_remove(&t.all, e);
	}
	hash_deinit(&t.all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_zeroed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
