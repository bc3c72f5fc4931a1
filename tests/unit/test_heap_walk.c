/*
 * Analysis of glibc's memory: walks through synthetic heaps, arenas in synthetic data, stacks of
 * threads that ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "leak/leakcheck.h"
#include "malloc/glibc.h"
#include "tracee/control/roots.h"
#include "rounds.h"

#define BASE UINT64_C(0x7f0000000000)
#define WORDS 16384u

static uint64_t memory[WORDS];

static taddr_t at(unsigned word)
{
	return BASE + word * sizeof(uint64_t);
}

static ssize_t read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + sizeof(memory))
		return -1;
	size = MIN(size, BASE + sizeof(memory) - addr);
	memcpy(buf, (uint8_t *)memory + (addr - BASE), size);
	return (ssize_t)size;
}

/* A chunk of @words at @word, whose flag says whether the one before is in use. */
static unsigned chunk(unsigned word, unsigned words, unsigned is_before_used)
{
	memory[word + 1] = words * 8u | is_before_used;
	return word + words;
}

static void clear(void)
{
	memset(memory, 0, sizeof(memory));
}

/* -- walks -- */

/* Used 100, free 110, used 120, used 124, top 130, which ends at 160. */
static void make_heap(void)
{
	clear();
	chunk(chunk(chunk(chunk(chunk(100, 10, 1), 10, 1), 4, 0), 6, 1), 30, 1);
}

/* Feeds @step words at a time. */
static void walk(struct heap_walk *w, unsigned step)
{
	for (unsigned i = 0; i < 200; i += step)
		heap_walk_feed(w, at(i), &memory[i], step * 8);
}

static void test_walk(void **state)
{
	static const unsigned steps[] = {1, 2, 5, 8, 200};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct heap_walk w;

		make_heap();
		heap_walk_init(&w, at(100), at(160), at(130));
		walk(&w, steps[i]);
		assert_int_equal(w.state, HEAP_WALK_DONE);
		assert_int_equal(w.free.count, 2);
		assert_int_equal(w.free.data[0].start, at(111));
		assert_int_equal(w.free.data[0].end, at(121));
		assert_int_equal(w.free.data[1].start, at(131));
		assert_int_equal(w.free.data[1].end, at(160));
		heap_walk_deinit(&w);
	}
}

/* Where other memory from sbrk follows, and at the end of a heap that another one continues. */
static void test_fencepost(void **state)
{
	struct heap_walk w;

	make_heap();
	memory[131] = 16 | 1;
	heap_walk_init(&w, at(100), at(200), 0);
	walk(&w, 8);
	assert_int_equal(w.state, HEAP_WALK_DONE);
	assert_int_equal(w.end, at(130));
	assert_int_equal(w.free.count, 1);
	heap_walk_deinit(&w);
}

static void expect_failure(taddr_t start, taddr_t end, taddr_t top)
{
	struct heap_walk w;

	heap_walk_init(&w, start, end, top);
	walk(&w, 8);
	assert_int_not_equal(w.state, HEAP_WALK_DONE);
	heap_walk_deinit(&w);
}

static void test_no_heap(void **state)
{
	make_heap();
	expect_failure(at(101), at(160), at(130)); /* not aligned */
	expect_failure(at(102), at(160), at(130)); /* no chunk */
	expect_failure(at(120), at(160), at(130)); /* no free chunk precedes the first one */
	expect_failure(at(100), at(160), at(126)); /* the top is passed */
	expect_failure(at(100), at(160), at(170));
	expect_failure(at(160), at(100), at(130));
	memory[121] = 1u << 20 | 1;
	expect_failure(at(100), at(160), at(130)); /* too large */
	memory[121] = 24 | 1;
	expect_failure(at(100), at(160), at(130));
	memory[121] = UINT64_MAX;
	expect_failure(at(100), at(160), at(130));
}

/* -- leak checks of a heap -- */

/* Blocks of make_heap, all 24 bytes or of as many as fit: at 102 (72 bytes), 122, 126. */
static void begin(struct leakcheck *c, bool knows_all)
{
	leakcheck_init(c);
	make_heap();
	for (unsigned word = 102; word <= 126; word += word == 102 ? 20 : 4)
		leakcheck_add_block(c, &(struct leakcheck_block){
			.addr = at(word), .size = word == 102 ? 65 : 24, .leaf = word});
	c->knows_all = knows_all;
	leakcheck_add_memory(c, BASE, BASE + sizeof(memory));
	leakcheck_add_heap(c, at(100), at(160), at(130));
}

static enum leakcheck_state finish(struct leakcheck *c, unsigned word)
{
	enum leakcheck_state state = LEAKCHECK_REACHABLE;

	leakcheck_scan(c, read_memory, NULL);
	leakcheck_run(c);
	for (size_t i = 0; i < c->blocks.count; i++)
		if (c->blocks.data[i].leaf == word)
			state = (enum leakcheck_state)c->state[i];
	leakcheck_deinit(c);
	return state;
}

/* Links and other contents of free chunks are not followed. */
static void test_free_is_no_root(void **state)
{
	struct leakcheck c;

	for (unsigned word = 112; word < 120; word++) {
		begin(&c, false);
		memory[word] = at(110); /* in the last word of the block at 102 */
		assert_int_equal(finish(&c, 102), LEAKCHECK_DEFINITE);
	}
	begin(&c, false);
	memory[140] = at(122); /* the top */
	assert_int_equal(finish(&c, 122), LEAKCHECK_DEFINITE);
	begin(&c, false);
	memory[161] = at(122); /* after the heap */
	assert_int_equal(finish(&c, 122), LEAKCHECK_REACHABLE);
}

/* A chunk in use is an earlier block, or is in a thread's cache. */
static void test_unknown_chunk(void **state)
{
	for (unsigned all = 0; all < 2; all++) {
		struct leakcheck c;

		begin(&c, all);
		memory[121] |= 1; /* 110 is in use */
		memory[115] = at(122);
		assert_int_equal(finish(&c, 122), all ? LEAKCHECK_DEFINITE : LEAKCHECK_REACHABLE);
		begin(&c, all);
		memory[121] |= 1;
		memory[115] = at(122);
		leakcheck_add_other(&c, at(114), at(116)); /* it is not classified */
		assert_int_equal(finish(&c, 122), LEAKCHECK_REACHABLE);
	}
}

/*
 * The rest of a chunk after the block's size counts as the block's if a pointer leads to its
 * start.
 */
static void test_rounded_size(void **state)
{
	struct leakcheck c;

	begin(&c, true);
	memory[5] = at(102);
	memory[110] = at(122); /* bytes 64 to 71, of which one is in the block */
	assert_int_equal(finish(&c, 122), LEAKCHECK_REACHABLE);
	begin(&c, true);
	memory[5] = at(102);
	memory[110] = at(123);
	assert_int_equal(finish(&c, 122), LEAKCHECK_DEFINITE);
	begin(&c, true);
	memory[110] = at(122);
	assert_int_equal(finish(&c, 122), LEAKCHECK_INDIRECT);
}

/* A heap that is being changed is treated as other memory. */
static void test_broken_heap(void **state)
{
	struct leakcheck c;

	begin(&c, true);
	memory[121] = 8;
	memory[115] = at(122);
	assert_int_equal(finish(&c, 122), LEAKCHECK_REACHABLE);
}

/* -- arenas -- */

#define STATE 2000u /* the main arena, in words */
#define BINS (STATE + 14u)

static void make_arena(unsigned bins, taddr_t next, taddr_t top, uint64_t bytes)
{
	for (unsigned i = 0; i < 254; i += 2)
		memory[bins + i] = memory[bins + i + 1] = at(bins + i) - 16;
	memory[bins - 2] = top;
	memory[bins + 256] = next;
	memory[bins + 259] = memory[bins + 260] = bytes;
}

static void search(struct arenas *a)
{
	*a = (struct arenas){0};
	arenas_search(a, at(1000), at(6000), read_memory, NULL);
	arenas_sort(a);
}

static void test_arena(void **state)
{
	for (unsigned head = 13; head <= 14; head++) {
		struct arenas a;
		taddr_t arena = at(BINS - head);

		make_heap();
		make_arena(BINS, arena, at(130), 60 * 8);
		memory[BINS + 20] = at(110); /* lists that are not empty */
		memory[BINS + 21] = at(120);
		memory[BINS] = memory[BINS + 1] = at(110);
		search(&a);
		assert_int_equal(a.states.count, 1);
		assert_int_equal(a.states.data[0].start, arena);
		assert_int_equal(a.states.data[0].end, at(BINS + 261));
		assert_int_equal(a.heaps.count, 1);
		assert_int_equal(a.heaps.data[0].start, at(100));
		assert_int_equal(a.heaps.data[0].top_end, at(160));
		assert_int_equal(a.heaps.data[0].top, at(130));
		arenas_deinit(&a);
	}
}

/* A second arena, in its heap. */
static void test_second_arena(void **state)
{
	struct arenas a;
	unsigned other = 6, bins = other + 14; /* memory begins at a multiple of 64 MiB */

	clear();
	make_arena(BINS, at(other), BASE - 16, 60 * 8); /* its heap cannot be read */
	make_arena(bins, at(STATE), at(400), 0);
	memory[0] = at(other);
	memory[2] = 800 * 8;
	memory[401] = 50 * 8 | 1;
	search(&a);
	assert_int_equal(a.states.count, 2);
	assert_int_equal(a.states.data[0].start, at(other));
	assert_int_equal(a.heaps.count, 1);
	assert_int_equal(a.heaps.data[0].start, at(ROUND_UP(bins + 261, 2u)));
	assert_int_equal(a.heaps.data[0].top_end, at(450));
	assert_int_equal(a.heaps.data[0].top, at(400));
	arenas_deinit(&a);
}

static void test_no_arena(void **state)
{
	struct arenas a;

	make_heap();
	make_arena(BINS, at(STATE) + 16, at(130), 60 * 8); /* the ring does not close */
	search(&a);
	assert_int_equal(a.states.count, 0);
	make_arena(BINS, at(STATE), at(130), 60 * 8);
	memory[BINS + 40] = 17; /* no chunk */
	search(&a);
	assert_int_equal(a.states.count, 0);
	make_arena(BINS, at(STATE), UINT64_C(0x123456789000), 60 * 8); /* the top cannot be read */
	search(&a);
	assert_int_equal(a.states.count, 1);
	assert_int_equal(a.heaps.count, 0);
	arenas_deinit(&a);
}

/* Random words: all that is found must be usable. */
static void test_random(void **state)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < rounds(1000); round++) {
		struct arenas a;
		struct leakcheck c;

		make_heap();
		make_arena(BINS, at(STATE), at(130), 60 * 8);
		for (unsigned i = 0; i < 12; i++) {
			static const unsigned places[] = {100, 12, STATE, BINS - 2, BINS + 250, 12, 1000, 4};
			unsigned place = places[(seed = hash_u64(seed + i)) % 4 * 2], span = places[seed / 8 % 4 * 2 + 1];
			uint64_t values[] = {seed, at(seed % WORDS), seed % 100, at(seed % 300) & ~UINT64_C(15), UINT64_MAX};

			memory[place + (seed >> 20) % (span + 1) % 40] = values[(seed >> 40) % ARRAY_SIZE(values)];
		}
		search(&a);
		leakcheck_init(&c);
		leakcheck_add_block(&c, &(struct leakcheck_block){.addr = at(102), .size = 65});
		c.knows_all = round % 2;
		leakcheck_add_memory(&c, BASE, BASE + sizeof(memory));
		for (size_t i = 0; i < a.heaps.count; i++)
			leakcheck_add_heap(&c, a.heaps.data[i].start, a.heaps.data[i].top_end, a.heaps.data[i].top);
		leakcheck_scan(&c, read_memory, NULL);
		leakcheck_run(&c);
		leakcheck_deinit(&c);
		arenas_deinit(&a);
	}
}

/* -- stacks of threads that ended -- */

static void test_dead_stack(void **state)
{
	uint64_t page[512] = {0};
	taddr_t end = BASE + 0x801000, start = BASE + 0x1000, tcb = end - 4096 + 200 * 8;
	struct dead_stack dead;

	assert_false(dead_stack_check(start, end, page, &dead));
	page[200] = page[202] = tcb;
	assert_false(dead_stack_check(start, end, page, &dead)); /* no stack is described */
	page[410] = BASE;
	page[411] = end - BASE;
	assert_true(dead_stack_check(start, end, page, &dead));
	assert_int_equal(dead.kept_start, tcb);
	assert_int_equal(dead.kept_end, end);
	page[290] = UINT32_MAX;
	assert_true(dead_stack_check(start, end, page, &dead)); /* joined */
	assert_int_equal(dead.kept_end, tcb + 720);
	page[290] = 4711;
	assert_false(dead_stack_check(start, end, page, &dead)); /* it lives */
	page[290] = 0;
	assert_false(dead_stack_check(start, end - 4096, page, &dead)); /* another mapping */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk), cmocka_unit_test(test_fencepost), cmocka_unit_test(test_no_heap),
		cmocka_unit_test(test_free_is_no_root), cmocka_unit_test(test_unknown_chunk),
		cmocka_unit_test(test_rounded_size), cmocka_unit_test(test_broken_heap), cmocka_unit_test(test_arena),
		cmocka_unit_test(test_second_arena), cmocka_unit_test(test_no_arena), cmocka_unit_test(test_random),
		cmocka_unit_test(test_dead_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
