/* The filter of sampled blocks: words, collisions, and the cells that sum words up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "arch/pad_sampling.h"

#define THREADS 4
#define ROUNDS 200000
#define PERIOD (16ull << PAD_FILTER_BITS) /* bytes after which hashes begin again, permuted */

static struct pad_filter filter;

static void assert_empty(void)
{
	static const struct pad_filter none;

	assert_memory_equal(&filter, &none, sizeof(filter));
}

/* Another address with the hash of @address. */
static uint64_t twin(uint64_t address)
{
	uint64_t other = address + PERIOD;

	while (pad_filter_hash(other) != pad_filter_hash(address))
		other += 16;
	return other;
}

static void test_one(void **state)
{
	const uint64_t a = 0x7f0012345670, neighbour = a + 16;

	(void)state;
	assert_int_equal(pad_filter_take(&filter, a), PAD_FILTER_NO);
	pad_filter_add(&filter, a);
	assert_true(pad_filter_may_have(&filter, a));
	assert_false(pad_filter_may_have(&filter, neighbour));
	assert_int_equal(filter.cell[pad_filter_hash(a) >> PAD_CELL_SHIFT], 1);
	pad_filter_add(&filter, neighbour);
	assert_int_equal(filter.cell[pad_filter_hash(a) >> PAD_CELL_SHIFT], 2);
	assert_int_equal(pad_filter_take(&filter, twin(a)), PAD_FILTER_NO);
	assert_int_equal(pad_filter_take(&filter, a), PAD_FILTER_TAKEN);
	assert_false(pad_filter_may_have(&filter, a));
	assert_int_equal(pad_filter_take(&filter, neighbour), PAD_FILTER_TAKEN);
	assert_empty();
}

static void test_collision(void **state)
{
	const uint64_t a = 0x55a0001230;

	(void)state;
	pad_filter_add(&filter, a);
	pad_filter_add(&filter, twin(a));
	assert_int_equal(filter.cell[pad_filter_hash(a) >> PAD_CELL_SHIFT], 1);
	assert_int_equal(pad_filter_take(&filter, a), PAD_FILTER_MAYBE);
	pad_filter_decrement(&filter, a);
	assert_true(pad_filter_may_have(&filter, twin(a)));
	pad_filter_decrement(&filter, twin(a));
	assert_empty();
}

/* A word whose count is full stays as it is, and so does its cell. */
static void test_full(void **state)
{
	const uint64_t a = 0x10;

	(void)state;
	for (unsigned i = 0; i < 2 * PAD_FILTER_COUNT; i++)
		pad_filter_add(&filter, a);
	for (unsigned i = 0; i < 2 * PAD_FILTER_COUNT; i++)
		pad_filter_decrement(&filter, a);
	assert_true(pad_filter_may_have(&filter, a));
	assert_int_equal(filter.cell[pad_filter_hash(a) >> PAD_CELL_SHIFT], 1);
	memset(&filter, 0, sizeof(filter));
}

/* Threads whose samples share few words: each sees its own sample until it takes it. */
static void *add_and_take(void *number)
{
	uint64_t random = (uintptr_t)number, lost = 0;

	for (int i = 0; i < ROUNDS; i++) {
		random = pad_next_random(random);
		uint64_t address = (random >> 60 << 4) + ((random >> 40 & 3) * PERIOD);

		pad_filter_add(&filter, address);
		lost += !pad_filter_may_have(&filter, address);
		if (pad_filter_take(&filter, address) == PAD_FILTER_MAYBE)
			pad_filter_decrement(&filter, address);
	}
	return (void *)(uintptr_t)lost; /* NOLINT(performance-no-int-to-ptr) */
}

static void test_threads(void **state)
{
	pthread_t thread[THREADS];
	void *lost;

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_and_take, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &lost), 0);
		assert_null(lost);
	}
	assert_empty();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_collision),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
