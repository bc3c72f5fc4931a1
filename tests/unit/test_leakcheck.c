/*
 * Leak checks on made-up memory: the four answers case by case, and random graphs
 * against a plain reading of the definitions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "leak/leakcheck.h"

#define BASE UINT64_C(0x7f0000001000)
#define WORDS 8192u

/* Memory at BASE; pages of it can be unreadable. */
static uint64_t memory[WORDS];
static taddr_t hole; /* the page there cannot be read; 0 = all can */

static ssize_t read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	assert_true(addr >= BASE && addr + size <= BASE + sizeof(memory));
	if (hole && addr < hole + PAGE_SIZE_MIN && addr + size > hole) {
		if (addr >= hole)
			return -1;
		size = hole - addr;
	}
	memcpy(buf, (uint8_t *)memory + (addr - BASE), size);
	return (ssize_t)size;
}

static taddr_t at(unsigned word)
{
	return BASE + word * sizeof(uint64_t);
}

static void set(unsigned word, uint64_t value)
{
	memory[word] = value;
}

static struct leakcheck begin(void)
{
	struct leakcheck c;
	leakcheck_init(&c);
	memset(memory, 0, sizeof(memory));
	hole = 0;
	return c;
}

static void block(struct leakcheck *c, unsigned word, uint64_t size)
{
	leakcheck_add_block(c, &(struct leakcheck_block){.addr = at(word), .size = size, .leaf = word});
}

static void run(struct leakcheck *c)
{
	leakcheck_scan(c, BASE, BASE + sizeof(memory), read_memory, NULL);
	leakcheck_run(c);
}

static enum leakcheck_state state_of(const struct leakcheck *c, unsigned word)
{
	for (size_t i = 0; i < c->blocks.count; i++)
		if (c->blocks.data[i].leaf == word)
			return (enum leakcheck_state)c->state[i];
	fail_msg("no block at word %u", word);
	return LEAKCHECK_DEFINITE;
}

static void test_chain_from_root(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 64);
	block(&c, 200, 64);
	block(&c, 300, 64);
	set(5, at(100));
	set(103, at(200)); /* inside of the first */
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

static void test_register(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 64);
	block(&c, 200, 64);
	leakcheck_add_root(&c, at(100));
	leakcheck_add_root(&c, at(201));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_POSSIBLE);
	leakcheck_deinit(&c);
}

static void test_interior(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 64);
	block(&c, 200, 64);
	block(&c, 300, 64);
	set(5, at(100) + 1);
	set(100, at(200));  /* from one that is only possibly reached */
	set(200, at(300) + 8);
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_POSSIBLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_POSSIBLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_POSSIBLE);
	leakcheck_deinit(&c);
}

/* A second, better chain is found after a doubtful one. */
static void test_better_chain(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 64);
	block(&c, 200, 64);
	block(&c, 300, 64);
	set(5, at(100) + 8);
	set(100, at(200));
	set(200, at(300));
	set(6, at(100));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

static void test_ends(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 60); /* ends within word 107 */
	block(&c, 200, 0);
	block(&c, 300, 16);
	set(5, at(100) + 59);
	set(6, at(200));
	set(7, at(300) + 16); /* one past the end */
	set(8, at(300) - 1);
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_POSSIBLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

static void test_lost_list(void **state)
{
	struct leakcheck c = begin();
	for (unsigned i = 0; i < 5; i++) {
		block(&c, 100 + 10 * i, 32);
		if (i > 0)
			set(100 + 10 * i, at(100 + 10 * (i - 1))); /* the head is the highest */
	}
	run(&c);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(state_of(&c, 100 + 10 * i), i == 4 ? LEAKCHECK_DEFINITE : LEAKCHECK_INDIRECT);
	leakcheck_deinit(&c);
}

static void test_cycle(void **state)
{
	struct leakcheck c = begin();
	block(&c, 300, 32);
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 400, 32); /* points to itself */
	set(100, at(200));
	set(200, at(300) + 8);
	set(300, at(100));
	set(401, at(400));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_DEFINITE); /* one for all, the lowest */
	assert_int_equal(state_of(&c, 200), LEAKCHECK_INDIRECT);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_INDIRECT);
	assert_int_equal(state_of(&c, 400), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

/* A cycle that a higher lost block leads to is indirect as a whole. */
static void test_cycle_behind_leader(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 900, 32);
	set(100, at(200));
	set(200, at(100));
	set(900, at(200));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_INDIRECT);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_INDIRECT);
	assert_int_equal(state_of(&c, 900), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

static void test_hole(void **state)
{
	struct leakcheck c = begin();
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 300, 32);
	hole = BASE + 2 * PAGE_SIZE_MIN;
	set(1023, at(100)); /* just before it */
	set(1024, at(200)); /* in it */
	set(1024 + 512, at(300)); /* just behind it */
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	assert_int_equal(c.scan.unreadable, PAGE_SIZE_MIN);
	assert_int_equal(c.scan.bytes, sizeof(memory) - PAGE_SIZE_MIN);
	leakcheck_deinit(&c);
}

/* Words that lie in two ranges, or in none, when ranges do not begin at pages. */
static void test_ranges(void **state)
{
	struct leakcheck c = begin();
	block(&c, 1000, 32);
	block(&c, 2000, 32);
	block(&c, 3000, 32);
	set(10, at(1000));
	set(11, at(2000));
	set(12, at(3000));
	leakcheck_scan(&c, at(10) - 3, at(10) + 8, read_memory, NULL);
	leakcheck_scan(&c, at(12), at(13), read_memory, NULL);
	leakcheck_run(&c);
	assert_int_equal(state_of(&c, 1000), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 2000), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 3000), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

/* Blocks of many sizes are found by each of their bytes and by none other. */
static void test_index(void **state)
{
	static const struct block_span spans[] = {
		{0x10000, 0x10001}, {0x10001, 0x10002}, {0x101ff, 0x10201}, {0x10400, 0x10600},
		{0x200000, 0x400000}, {0x400000, 0x400010}, {0x3fffffff, 0x80000001},
		{UINT64_C(0x100000000), UINT64_C(0x180000000)}, {UINT64_C(0x10000200000), UINT64_C(0x20000000000)},
		{UINT64_C(0x7ffffffff000), UINT64_C(0x800000000000)},
	};
	struct block_index x;
	block_index_init(&x, spans, ARRAY_SIZE(spans));
	for (uint32_t i = 0; i < ARRAY_SIZE(spans); i++) {
		taddr_t middle = spans[i].start + (spans[i].end - spans[i].start) / 2;
		bool touches = i + 1 < ARRAY_SIZE(spans) && spans[i + 1].start == spans[i].end;
		bool touched = i > 0 && spans[i - 1].end == spans[i].start;
		assert_int_equal(block_index_find(&x, spans[i].start), i);
		assert_int_equal(block_index_find(&x, middle), i);
		assert_int_equal(block_index_find(&x, spans[i].end - 1), i);
		assert_int_equal(block_index_find(&x, spans[i].end), touches ? i + 1 : BLOCK_INDEX_NONE);
		assert_int_equal(block_index_find(&x, spans[i].start - 1), touched ? i - 1 : BLOCK_INDEX_NONE);
	}
	assert_int_equal(block_index_find(&x, 0), BLOCK_INDEX_NONE);
	assert_int_equal(block_index_find(&x, UINT64_MAX), BLOCK_INDEX_NONE);
	block_index_deinit(&x);
}

/* -- random graphs -- */

#define MAX_BLOCKS 40

struct plain {
	unsigned count, start[MAX_BLOCKS], words[MAX_BLOCKS];
	bool starts[MAX_BLOCKS + 1][MAX_BLOCKS]; /* from -> to by the start; the last row: roots */
	bool any[MAX_BLOCKS + 1][MAX_BLOCKS];    /* from -> to anyhow */
};

static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

static void close_paths(const struct plain *p, bool way[MAX_BLOCKS][MAX_BLOCKS])
{
	for (unsigned k = 0; k < p->count; k++)
		for (unsigned i = 0; i < p->count; i++)
			for (unsigned j = 0; j < p->count; j++)
				way[i][j] |= way[i][k] && way[k][j];
}

/* The definitions, read literally; rows of @state_out by block. */
static void judge(const struct plain *p, enum leakcheck_state *state_out)
{
	bool certain[MAX_BLOCKS][MAX_BLOCKS], way[MAX_BLOCKS][MAX_BLOCKS];
	memcpy(certain, p->starts, sizeof(certain));
	memcpy(way, p->any, sizeof(way));
	close_paths(p, certain);
	close_paths(p, way);
	bool lost[MAX_BLOCKS];
	for (unsigned i = 0; i < p->count; i++) {
		bool is_certain = p->starts[MAX_BLOCKS][i], is_possible = p->any[MAX_BLOCKS][i];
		for (unsigned k = 0; k < p->count; k++) {
			is_certain |= p->starts[MAX_BLOCKS][k] && certain[k][i];
			is_possible |= p->any[MAX_BLOCKS][k] && way[k][i];
		}
		lost[i] = !is_certain && !is_possible;
		state_out[i] = is_certain ? LEAKCHECK_REACHABLE : LEAKCHECK_POSSIBLE;
	}
	for (unsigned i = 0; i < p->count; i++) {
		if (!lost[i])
			continue;
		state_out[i] = LEAKCHECK_DEFINITE;
		for (unsigned k = 0; k < p->count; k++)
			if (k != i && lost[k] && way[k][i] && (!way[i][k] || p->start[k] < p->start[i]))
				state_out[i] = LEAKCHECK_INDIRECT;
	}
}

/* A word at @word, in block @from (or a root), that may point to any block. */
static void random_word(struct plain *p, unsigned word, unsigned from)
{
	unsigned to = below(p->count), offset = below(3) ? 0 : below(p->words[to] * 8);
	set(word, at(p->start[to]) + offset);
	p->any[from][to] = true;
	p->starts[from][to] |= offset == 0;
}

static void test_random(void **state)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct plain p = {.count = 1 + below(MAX_BLOCKS)};
		struct leakcheck c = begin();
		enum leakcheck_state want[MAX_BLOCKS];
		unsigned word = 10;
		for (unsigned i = 0; i < p.count; i++) {
			word += 1 + below(100);
			p.start[i] = word;
			p.words[i] = 1 + below(below(2) ? 3 : 80);
			word += p.words[i];
		}
		unsigned edges = below(2 * p.count + 1), roots = below(4);
		for (unsigned i = 0; i < edges; i++) {
			unsigned from = below(p.count), to = p.start[from] + below(p.words[from]);
			if (!memory[to])
				random_word(&p, to, from);
		}
		for (unsigned i = 0; i < roots; i++)
			random_word(&p, i, MAX_BLOCKS);
		for (unsigned i = p.count; i-- > 0;)
			block(&c, p.start[i], p.words[i] * 8);
		run(&c);
		judge(&p, want);
		for (unsigned i = 0; i < p.count; i++)
			assert_int_equal(state_of(&c, p.start[i]), want[i]);
		leakcheck_deinit(&c);
	}
}

/* An allocator's own block, divided by the program: its parts are looked at, itself is memory as any other. */
static void test_divided(void **state)
{
	struct leakcheck c = begin();
	leakcheck_add_block(&c, &(struct leakcheck_block){.addr = at(100), .size = 1024, .leaf = 1});
	block(&c, 100, 64);
	block(&c, 120, 64);
	block(&c, 140, 64);
	block(&c, 300, 64);
	set(5, at(120));   /* from outside */
	set(121, at(140)); /* from one part to another */
	set(160, at(300)); /* from what is in no part */
	run(&c);
	assert_int_equal(c.blocks.count, 4);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 120), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 140), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

static void test_nothing(void **state)
{
	struct leakcheck c = begin();
	set(5, at(100));
	run(&c);
	assert_int_equal(c.blocks.count, 0);
	leakcheck_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_chain_from_root), cmocka_unit_test(test_register),
		cmocka_unit_test(test_interior), cmocka_unit_test(test_better_chain), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_lost_list), cmocka_unit_test(test_cycle), cmocka_unit_test(test_cycle_behind_leader),
		cmocka_unit_test(test_hole), cmocka_unit_test(test_ranges), cmocka_unit_test(test_index),
		cmocka_unit_test(test_random), cmocka_unit_test(test_divided),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
