/* Buckets of Go's heap profile, in memory of the test: what is published, and what is corrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "languages/go_heap.h"

#define BASE 0x10000u
#define BIAS 0x4000u

static const struct go_heap_places places = {
	.buckets = BASE - BIAS, .cycle = BASE + 8 - BIAS, .rate = BASE + 16 - BIAS,
	.lock = BASE + 24 - BIAS, .cycle_shift = 1};

static uint64_t words[1024];
static size_t used;

static bool read_words(void *ctx, taddr_t addr, void *buf, size_t size)
{
	if (addr < BASE || addr - BASE > sizeof(words) || size > sizeof(words) - (addr - BASE))
		return false;
	memcpy(buf, (const char *)words + (addr - BASE), size);
	return true;
}

static const struct language_memory memory = {.read = read_words};

static void begin(uint64_t cycle, uint64_t rate)
{
	memset(words, 0, sizeof(words));
	words[1] = cycle << 1 | 1;
	words[2] = rate;
	used = 8;
}

/* A bucket in front of the others, of @depth addresses; its four records follow. */
static uint64_t *add(size_t depth)
{
	uint64_t *b = &words[used], at = BASE + 8 * used;

	b[1] = words[0];
	b[2] = 1;
	b[4] = 48;
	b[5] = depth;
	for (size_t i = 0; i < depth; i++)
		b[6 + i] = 0x401000 + i;
	words[0] = at;
	used += 6 + depth + 16;
	return b + 6 + depth;
}

static void count(uint64_t *record, unsigned which, uint64_t allocated, uint64_t freed)
{
	uint64_t *r = record + 4 * which;

	r[0] = allocated;
	r[1] = freed;
	r[2] = allocated * 48;
	r[3] = freed * 48;
}

static struct go_heap read_heap(void)
{
	struct go_heap h;

	assert_true(go_heap_read(&memory, &places, BIAS, &h));
	return h;
}

/* Published is what was, and what the current cycle counts; what is to come is not. */
static void test_published(void **state)
{
	begin(7, 512); /* 7 % 3 = 1 */
	uint64_t *one = add(3), *two = add(0);

	count(one, 0, 10, 4);
	count(one, 1, 1000, 0);
	count(one, 2, 5, 1);
	count(one, 3, 1000, 0);
	count(two, 1, 1, 0);
	struct go_heap h = read_heap();

	assert_false(h.is_torn || h.is_cut);
	assert_int_equal(h.rate, 512);
	assert_int_equal(h.buckets.count, 1);
	assert_int_equal(h.buckets.data[0].counts.allocated, 15);
	assert_int_equal(h.buckets.data[0].counts.freed, 5);
	assert_int_equal(h.buckets.data[0].counts.allocated_bytes, 15 * 48);
	assert_int_equal(h.buckets.data[0].pcs, 3);
	assert_int_equal(h.pcs.data[h.buckets.data[0].pc + 2], 0x401002);
	go_heap_deinit(&h);
}

/* Before the first collection all is. */
static void test_first(void **state)
{
	begin(0, 1);
	uint64_t *one = add(1);

	count(one, 2, 3, 0);
	count(one, 3, 4, 0);
	struct go_heap h = read_heap();

	assert_int_equal(h.buckets.count, 1);
	assert_int_equal(h.buckets.data[0].counts.allocated, 7);
	go_heap_deinit(&h);
}

static void test_corrupt(void **state)
{
	struct go_heap h;

	begin(0, 1);
	count(add(1), 0, 1, 0);
	words[9] = BASE + 4; /* the next one of the first */
	h = read_heap();
	assert_true(h.is_cut);
	assert_int_equal(h.buckets.count, 1);
	go_heap_deinit(&h);

	begin(0, 1);
	add(1);
	words[10] = 2; /* of another kind */
	h = read_heap();
	assert_true(h.is_cut);
	go_heap_deinit(&h);

	begin(0, 1);
	add(1);
	words[13] = UINT64_MAX / 8; /* addresses */
	h = read_heap();
	assert_true(h.is_cut);
	go_heap_deinit(&h);

	begin(0, 1);
	words[0] = UINT64_MAX & ~7ull;
	words[3] = 1;
	h = read_heap();
	assert_true(h.is_cut && h.is_torn);
	go_heap_deinit(&h);
	assert_false(go_heap_read(&memory, &places, 0x900000, &h));
}

/* A list that is a ring ends. */
static void test_ring(void **state)
{
	begin(0, 1);
	add(0);
	words[9] = words[0];
	struct go_heap h = read_heap();

	assert_true(h.is_cut);
	go_heap_deinit(&h);
}

/* As in runtime/pprof.scaleHeapSample. */
static void test_estimates(void **state)
{
	const struct go_counts few = {10, 4, 480, 192}, none = {0}, huge = {1, 0, UINT64_MAX, 0};
	struct go_estimate e = go_heap_estimate(&few, 1);

	assert_int_equal(e.allocated, 10);
	assert_int_equal(e.live_bytes, 288);
	e = go_heap_estimate(&few, 512);
	assert_int_equal(e.allocated, 111); /* 10 / (1 - exp(-48 / 512)) */
	assert_int_equal(e.live, 67);
	e = go_heap_estimate(&none, 512);
	assert_int_equal(e.allocated, 0);
	go_heap_estimate(&huge, 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published), cmocka_unit_test(test_first),
		cmocka_unit_test(test_corrupt), cmocka_unit_test(test_ring),
		cmocka_unit_test(test_estimates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
