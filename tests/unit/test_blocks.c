/* The block table: every kind of block, replacement, random use against a plain array, size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "profile/blocks.h"
#include "profile/blocks_quick.h"

static struct block usual(taddr_t addr, uint64_t size, uint32_t leaf)
{
	return (struct block){ .addr = addr, .size = size, .capacity = capacity_of(size, 16), .leaf = leaf };
}

static void same_block(const struct block *a, const struct block *b)
{
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->capacity, b->capacity);
	assert_int_equal(a->leaf, b->leaf);
	assert_int_equal(a->time_us, b->time_us);
}

static void every_shape_comes_back_whole(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 15, 16, 65535, 65536, 4194240, 4194241, 1ull << 47,
					  (1ull << 48) - 1, 1ull << 48, UINT64_MAX };
	static const uint64_t TIME = 0x1dfedcba98;
	static const taddr_t addrs[] = { 1, 12345, 0x7ffff7d00010, 0xfffeffffffff, 0xffff00000000,
					 0xffff00000000 | 0xfedcba98, (1ull << 48) - 1, 1ull << 48,
					 0x7fff000000000000, UINT64_MAX };
	struct blocks *b = blocks_new(true, 16);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t k = 0; k < 2 * ARRAY_SIZE(addrs); k++) {
			struct block in = usual(addrs[k / 2], sizes[i], k % 2 ? (1u << 31) - 1 : 0), out;
			in.capacity += k % 2 ? 16 : 0;
			in.time_us = TIME;
			assert_false(blocks_add(b, &in, NULL));
			assert_true(blocks_find(b, in.addr, &out));
			same_block(&in, &out);
			memset(&out, 0, sizeof(out));
			assert_true(blocks_take(b, in.addr, &out));
			same_block(&in, &out);
			assert_false(blocks_take(b, in.addr, &out));
		}
	}
	assert_int_equal(blocks_count(b), 0);
	blocks_free(b);
}

/* After 38 hours the resolution is halved, of the old times, too. */
static void times_get_coarser(void **state)
{
	struct blocks *b = blocks_new(true, 16);
	struct block in = usual(0x1000, 10, 1), out;

	in.time_us = (1ull << 37) - 1;
	blocks_add(b, &in, NULL);
	in = usual(0x2000, 10, 1);
	in.time_us = (1ull << 39) + 7;
	blocks_add(b, &in, NULL);
	assert_true(blocks_find(b, 0x1000, &out));
	assert_int_equal(out.time_us, (1ull << 37) - 8);
	assert_true(blocks_take(b, 0x2000, &out));
	assert_int_equal(out.time_us, 1ull << 39);
	in.time_us = 99;
	assert_false(blocks_add(b, &in, NULL));
	assert_int_equal(blocks_quick_take(b, 0x2000).time_us, 96);
	blocks_free(b);
}

static void address_0_is_never_there(void **state)
{
	struct blocks *b = blocks_new(false, 16);
	struct block out = { .size = 77 };
	assert_false(blocks_find(b, 0, &out));
	assert_false(blocks_take(b, 0, &out));
	assert_int_equal(out.size, 77);
	blocks_free(b);
}

static void an_address_is_there_once(void **state)
{
	struct block plain = usual(0x1000, 10, 1), odd = usual(0x1000, 20, 2), old;
	odd.capacity += 100;
	struct block order[] = { plain, odd, plain, plain, odd, odd };
	struct blocks *b = blocks_new(false, 16);
	assert_false(blocks_add(b, &plain, &old));
	for (size_t i = 1; i < ARRAY_SIZE(order); i++) {
		assert_true(blocks_add(b, &order[i], &old));
		same_block(&order[i - 1], &old);
		assert_int_equal(blocks_count(b), 1);
		assert_true(blocks_find(b, 0x1000, &old));
		same_block(&order[i], &old);
	}
	blocks_free(b);
}

struct seen {
	uint64_t count, bytes, limit;
};

static int see(void *ctx, const struct block *block)
{
	struct seen *s = ctx;
	s->count++;
	s->bytes += block->size;
	return s->count == s->limit ? 7 : 0;
}

static void each_block_is_called_once(void **state)
{
	struct blocks *b = blocks_new(false, 16);
	uint64_t bytes = 0;
	for (uint64_t i = 1; i <= 1000; i++) {
		struct block block = usual(i * 16, i, 1);
		block.capacity += i % 10 ? 0 : 4096;
		blocks_add(b, &block, NULL);
		bytes += i;
	}
	struct seen all = { 0 }, some = { .limit = 5 };
	assert_int_equal(blocks_each(b, see, &all), 0);
	assert_int_equal(all.count, 1000);
	assert_int_equal(all.bytes, bytes);
	assert_int_equal(blocks_each(b, see, &some), 7);
	assert_int_equal(some.count, 5);
	blocks_free(b);
}

enum { ADDRS = 3000, STEPS = 400000 };

/* Random use; @model is the truth. */
static void random_step(struct blocks *b, struct block *model, uint64_t random)
{
	uint32_t i = (uint32_t)(random % ADDRS);
	taddr_t addr = 0x10000 + 16 * (uint64_t)i;
	struct block out = { 0 };
	random >>= 32;
	if (random % 5 < 2) {
		bool is_there = blocks_take(b, addr, &out);
		assert_int_equal(is_there, model[i].addr != 0);
		same_block(&out, &model[i]);
		memset(&model[i], 0, sizeof(model[i]));
		return;
	}
	struct block in = usual(addr, random % 70000, i);
	in.time_us = random;
	in.capacity += random % 11 ? 0 : 32;
	assert_int_equal(blocks_add(b, &in, &out), model[i].addr != 0);
	same_block(&out, &model[i]);
	model[i] = in;
}

static void random_use_agrees_with_an_array(void **state)
{
	struct block *model = xcalloc(ADDRS, sizeof(*model));
	struct blocks *b = blocks_new(true, 16);
	for (uint64_t step = 0; step < STEPS; step++) {
		random_step(b, model, hash_u64(step + 1));
		if (step % (STEPS / 4) == STEPS / 8) {
			struct blocks *c = blocks_clone(b);
			blocks_free(b);
			b = c;
			blocks_reserve(b, 3 * ADDRS);
		}
	}
	uint64_t count = 0;
	for (uint32_t i = 0; i < ADDRS; i++)
		count += model[i].addr != 0;
	assert_int_equal(blocks_count(b), count);
	blocks_free(b);
	free(model);
}

static void a_block_costs_24_bytes(void **state)
{
	/*
	 * up to LARGE the table may be half empty, which costs at most 10 MB; above, the average
	 * counts
	 */
	enum { STEP = 40000, LARGE = 440000, END = 2040000, MB = 1000000 };
	struct blocks *b = blocks_new(false, 16);
	double sum = 0;
	for (uint64_t i = 1; i <= END; i++) {
		struct block block = usual(0x5555000 + i * 48, 32, 1);
		blocks_add(b, &block, NULL);
		if (i < LARGE)
			assert_true(blocks_memory(b) < 24 * i + 10 * MB);
		else if (i % STEP == 0 && i > LARGE)
			sum += (double)blocks_memory(b) / (double)i;
	}
	assert_in_range((uint64_t)(1000 * sum / ((END - LARGE) / STEP)), 16000, 24500);
	blocks_free(b);
}

static void what_is_reserved_has_room(void **state)
{
	static const uint64_t counts[] = { 0, 1, 100, 5000, 300000 };

	for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
		struct blocks *b = blocks_new(true, 16);
		blocks_reserve(b, counts[k]);
		size_t memory = blocks_memory(b);
		for (uint64_t i = 1; i <= counts[k]; i++) {
			struct block block = usual(0x5555000 + i * 48, 32, 1);
			assert_false(blocks_add(b, &block, NULL));
		}
		if (counts[k] >= 5000)
			assert_int_equal(blocks_memory(b), memory);
		assert_int_equal(blocks_count(b), counts[k]);
		/* with times a slot has a third of 64 bytes, and the table may be half empty */
		assert_true(memory <= 43 * counts[k] + 10000);
		blocks_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape_comes_back_whole),
		cmocka_unit_test(times_get_coarser),
		cmocka_unit_test(address_0_is_never_there),
		cmocka_unit_test(an_address_is_there_once),
		cmocka_unit_test(each_block_is_called_once),
		cmocka_unit_test(random_use_agrees_with_an_array),
		cmocka_unit_test(a_block_costs_24_bytes),
		cmocka_unit_test(what_is_reserved_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
