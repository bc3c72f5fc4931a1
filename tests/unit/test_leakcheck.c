/*
 * Leak checks on synthetic memory: the four states case by case, and random graphs against a plain
 * reading of the definitions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "leak/block_index.h"
#include "leak/leakcheck.h"
#include "rounds.h"

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

static void begin(struct leakcheck *c)
{
	leakcheck_init(c);
	memset(memory, 0, sizeof(memory));
	hole = 0;
}

static void block(struct leakcheck *c, unsigned word, uint64_t size)
{
	leakcheck_add_block(c, &(struct leakcheck_block){.addr = at(word), .size = size, .leaf = word});
}

static void run(struct leakcheck *c)
{
	leakcheck_add_memory(c, BASE, BASE + sizeof(memory));
	leakcheck_scan(c, read_memory, NULL);
	leakcheck_run(c);
}

static enum leakcheck_state state_of(const struct leakcheck *c, unsigned word)
{
	for (size_t i = 0; i < c->blocks.count; i++)
		if (c->blocks.data[i].addr == at(word))
			return (enum leakcheck_state)c->state[i];
	fail_msg("no block at word %u", word);
	return LEAKCHECK_DEFINITE;
}

static void test_chain_from_root(void **state)
{
	struct leakcheck c;
	begin(&c);
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
	struct leakcheck c;
	begin(&c);
	block(&c, 100, 64);
	block(&c, 200, 64);
	leakcheck_add_root(&c, at(100));
	leakcheck_add_root(&c, at(201));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_POSSIBLE);
	leakcheck_deinit(&c);
}

/* An allocator's own memory: blocks count even there, and no word next to them. */
static void test_spare(void **state)
{
	struct leakcheck c;
	begin(&c);
	block(&c, 100, 16);
	block(&c, 200, 64);
	block(&c, 300, 64);
	block(&c, 400, 64);
	block(&c, 500, 64);
	set(5, at(200));
	set(12, at(100));
	set(101, at(300));
	set(102, at(400)); /* follows the first, where glibc's block would go on */
	set(110, at(500));
	leakcheck_add_spare(&c, at(0), at(10));
	leakcheck_add_spare(&c, at(90), at(110));
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 400), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 500), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

static void test_interior(void **state)
{
	struct leakcheck c;
	begin(&c);
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

/* A second chain of start pointers is found after one with an interior pointer. */
static void test_better_chain(void **state)
{
	struct leakcheck c;
	begin(&c);
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
	struct leakcheck c;
	begin(&c);
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
	struct leakcheck c;
	begin(&c);
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
	struct leakcheck c;
	begin(&c);
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

static uint32_t role(void *ctx, uint32_t leaf)
{
	(void)ctx;
	return leaf / 10;
}

static bool is_text(void *ctx, uint32_t kind)
{
	(void)ctx;
	return kind == 1;
}

static void part(struct leakcheck *c, unsigned word, uint32_t leaf)
{
	leakcheck_add_block(c, &(struct leakcheck_block){.addr = at(word), .size = 32, .leaf = leaf});
}

/*
 * Objects (kind 3) with a text (1), an array (2) and a part (4), which point back to them, at
 * addresses in all orders: the object leads, also where it has fewer pointers than elsewhere.
 */
static void test_cycles_of_objects(void **state)
{
	struct leakcheck c;
	begin(&c);
	for (unsigned i = 0; i < 8; i++) {
		unsigned base = 100 + 100 * i, object = base + 10 * (i % 4), other = base + 50;
		for (unsigned k = 0; k < 4; k++)
			if (base + 10 * k != object)
				other = base + 10 * k;
		part(&c, object, 30 + i);
		part(&c, other, i % 2 ? 10 : 20); /* a text or an array */
		part(&c, base + 80, 40);
		set(object, at(other));
		set(other + 2, at(object));
		if (i < 6) {
			set(object + 1, at(base + 80));
			set(base + 80, at(object));
			set(base + 81, at(object) + 8);
		}
	}
	c.kind = role;
	c.is_text = is_text;
	run(&c);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(state_of(&c, 100 + 100 * i + 10 * (i % 4)), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

static void timed(struct leakcheck *c, unsigned word, uint32_t leaf, unsigned us)
{
	leakcheck_add_block(c, &(struct leakcheck_block){
		.addr = at(word), .size = 32, .leaf = leaf, .time = us / 1000, .us = us % 1000});
}

/*
 * Containers of nodes (kind 2) with pointers to each other, back, and to texts (1) and values
 * (4), at addresses in all orders: the container is the oldest, also where its path was taken after
 * that of nodes; of equal times, the one whose path was taken first. A text is older.
 */
static void test_cycles_of_containers(void **state)
{
	struct leakcheck c;
	begin(&c);
	for (unsigned i = 0; i < 4; i++) {
		unsigned base = 100 + 100 * i, head = base + 20 * (i % 3), node = head == base ? base + 20 : base;
		unsigned last = base + 60 - (head - base) - (node - base);
		bool is_tie = i == 3;
		timed(&c, head, is_tie ? 6 : 50, 1998 + i);
		timed(&c, node, 20, 1999 + i - is_tie);
		timed(&c, last, 21, 5000);
		timed(&c, base + 80, 10, 7);
		timed(&c, base + 90, 40, 6000);
		set(head, at(node));
		set(node, at(last));
		set(node + 1, at(base + 80));
		set(base + 80, at(head));
		set(last, at(head) + 8);
		set(last + 1, at(base + 90));
	}
	c.kind = role;
	c.is_text = is_text;
	run(&c);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 100; k += k < 80 ? 20 : 10)
			if (k != 60)
				assert_int_equal(state_of(&c, 100 + 100 * i + k),
						 k == 20 * (i % 3) ? LEAKCHECK_DEFINITE : LEAKCHECK_INDIRECT);
	leakcheck_deinit(&c);
}

/* The first holder that is found; holders of lost blocks are unknown. */
static void test_holders(void **state)
{
	struct leakcheck c;
	uint64_t value;
	begin(&c);
	c.wants_holders = true;
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 300, 32);
	block(&c, 400, 32);
	set(10, at(100));
	set(101, at(200));
	leakcheck_add_root(&c, at(300));
	run(&c);
	assert_int_equal(leakcheck_holder(&c, 0, &value), LEAKCHECK_HELD_BY_MEMORY);
	assert_int_equal(value, at(10));
	assert_int_equal(leakcheck_holder(&c, 1, &value), LEAKCHECK_HELD_BY_BLOCK);
	assert_int_equal(value, 0);
	assert_int_equal(leakcheck_holder(&c, 2, &value), LEAKCHECK_HELD_BY_REGISTER);
	assert_int_equal(leakcheck_holder(&c, 3, &value), LEAKCHECK_HELD_BY_NOTHING);
	leakcheck_deinit(&c);
}

static uint32_t rank_of(void *ctx, taddr_t addr)
{
	(void)ctx;
	return addr == at(10) ? 2 : addr == at(11) ? 1 : 0;
}

/* The root of the lowest rank and what it leads to come first, registers last. */
static void test_holders_by_rank(void **state)
{
	struct leakcheck c;
	uint64_t value;
	begin(&c);
	c.wants_holders = true;
	c.rank = rank_of;
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 300, 32);
	set(10, at(200)); /* the block inside before its owner */
	set(11, at(100));
	set(12, at(300) + 8);
	set(100, at(200));
	leakcheck_add_root(&c, at(100));
	leakcheck_add_root(&c, at(200));
	run(&c);
	assert_int_equal(leakcheck_holder(&c, 0, &value), LEAKCHECK_HELD_BY_MEMORY);
	assert_int_equal(value, at(11));
	assert_int_equal(leakcheck_holder(&c, 1, &value), LEAKCHECK_HELD_BY_BLOCK);
	assert_int_equal(value, 0);
	assert_int_equal(leakcheck_holder(&c, 2, &value), LEAKCHECK_HELD_BY_MEMORY);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_POSSIBLE);
	leakcheck_deinit(&c);
}

/* A cycle that a higher lost block leads to is indirect as a whole. */
static void test_cycle_after_leader(void **state)
{
	struct leakcheck c;
	begin(&c);
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
	struct leakcheck c;
	begin(&c);
	block(&c, 100, 32);
	block(&c, 200, 32);
	block(&c, 300, 32);
	hole = BASE + 2 * PAGE_SIZE_MIN;
	set(1023, at(100)); /* just before it */
	set(1024, at(200)); /* in it */
	set(1024 + 512, at(300)); /* just after it */
	run(&c);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 200), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	assert_int_equal(c.scan.unreadable, PAGE_SIZE_MIN);
	assert_int_equal(c.scan.bytes, sizeof(memory) - PAGE_SIZE_MIN);
	leakcheck_deinit(&c);
}

/* Words that lie in two ranges or in none where ranges do not begin at pages. */
static void test_ranges(void **state)
{
	struct leakcheck c;
	begin(&c);
	block(&c, 1000, 32);
	block(&c, 2000, 32);
	block(&c, 3000, 32);
	set(10, at(1000));
	set(11, at(2000));
	set(12, at(3000));
	leakcheck_add_memory(&c, at(10) - 3, at(10) + 8);
	leakcheck_add_memory(&c, at(12), at(13));
	leakcheck_scan(&c, read_memory, NULL);
	leakcheck_run(&c);
	assert_int_equal(state_of(&c, 1000), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 2000), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 3000), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

static uint64_t seed = 1;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

static void expect_found(const struct block_index *x, taddr_t addr, uint32_t want, bool is_start)
{
	bool got_start;
	assert_int_equal(block_index_find(x, addr, &got_start), want);
	assert_int_equal(got_start, is_start);
}

/* Blocks of many sizes are found by each of their bytes and by no other. */
static void test_index(void **state)
{
	static const struct {
		taddr_t start, end;
	} spans[] = {
		{0x10000, 0x10001}, {0x10001, 0x10002}, {0x101ff, 0x10201}, {0x10210, 0x10218}, {0x10218, 0x10220},
		{0x10400, 0x10600}, {0x10610, 0x10620}, {0x10620, 0x11450}, {0x11c00, 0x11c01}, {0x11ff0, 0x12000},
		{0x200000, 0x400000}, {0x400000, 0x400010}, {0x3fffffff, 0x80000001},
		{UINT64_C(0x100000000), UINT64_C(0x180000000)}, {UINT64_C(0x10000200000), UINT64_C(0x20000000000)},
		{UINT64_C(0x7ffffffff000), UINT64_C(0x800000000000)},
	};
	struct leakcheck_block blocks[ARRAY_SIZE(spans)];
	struct block_index x;
	for (uint32_t i = 0; i < ARRAY_SIZE(spans); i++)
		blocks[i] = (struct leakcheck_block){
			.addr = spans[i].start, .size = spans[i].end - spans[i].start};
	block_index_init(&x, blocks, ARRAY_SIZE(spans));
	for (uint32_t i = 0; i < ARRAY_SIZE(spans); i++) {
		taddr_t middle = spans[i].start + (spans[i].end - spans[i].start) / 2;
		bool touches = i + 1 < ARRAY_SIZE(spans) && spans[i + 1].start == spans[i].end;
		bool touched = i > 0 && spans[i - 1].end == spans[i].start;
		bool is_first = touched && spans[i - 1].start == spans[i].start - 1;
		expect_found(&x, spans[i].start, i, true);
		expect_found(&x, middle, i, middle == spans[i].start);
		expect_found(&x, spans[i].end - 1, i, spans[i].end - 1 == spans[i].start);
		expect_found(&x, spans[i].end, touches ? i + 1 : BLOCK_INDEX_NONE, touches);
		expect_found(&x, spans[i].start - 1, touched ? i - 1 : BLOCK_INDEX_NONE, is_first);
	}
	expect_found(&x, 0, BLOCK_INDEX_NONE, false);
	expect_found(&x, UINT64_MAX, BLOCK_INDEX_NONE, false);
	block_index_deinit(&x);
}

/* Random blocks: each byte is looked up and compared with a plain table. */
static void test_index_densely(void **state)
{
	enum { BYTES = 16384 };
	static uint32_t owner[BYTES];
	for (unsigned round = 0; round < 200; round++) {
		struct leakcheck_block blocks[BYTES];
		struct block_index x;
		uint32_t count = 0, step = round % 2 ? 16 : 1;
		memset(owner, 0xff, sizeof(owner));
		for (uint32_t at = step * below(100);;) {
			uint32_t size = 1 + below(below(20) ? 64 : 3000);
			if (at + size > BYTES)
				break;
			for (uint32_t i = at; i < at + size; i++)
				owner[i] = count;
			blocks[count++] = (struct leakcheck_block){.addr = BASE + at, .size = size};
			at = ROUND_UP(at + size, step) + step * below(below(20) ? 3 : 200);
		}
		block_index_init(&x, blocks, count);
		for (uint32_t i = 0; i < BYTES; i++)
			expect_found(&x, BASE + i, owner[i],
				     owner[i] != BLOCK_INDEX_NONE && blocks[owner[i]].addr == BASE + i);
		block_index_deinit(&x);
	}
}

/* -- random graphs -- */

#define MAX_BLOCKS 40

struct plain {
	unsigned count, start[MAX_BLOCKS], words[MAX_BLOCKS];
	bool starts[MAX_BLOCKS + 1][MAX_BLOCKS]; /* from -> to by the start; the last row: roots */
	bool any[MAX_BLOCKS + 1][MAX_BLOCKS];    /* from -> to anyhow */
};

static void close_paths(const struct plain *p, bool way[MAX_BLOCKS][MAX_BLOCKS])
{
	for (unsigned k = 0; k < p->count; k++)
		for (unsigned i = 0; i < p->count; i++)
			for (unsigned j = 0; j < p->count; j++)
				way[i][j] |= way[i][k] && way[k][j];
}

/* Whether block @a leads a cycle rather than @b: each block is of its own kind. */
static bool is_better(const struct plain *p, unsigned a, unsigned b)
{
	unsigned rank_a = 0, rank_b = 0;
	for (unsigned k = 0; k < p->count; k++) {
		rank_a += k != a && p->any[a][k];
		rank_b += k != b && p->any[b][k];
	}
	return rank_a != rank_b ? rank_a > rank_b : p->start[a] < p->start[b];
}

/* The definitions, implemented literally; rows of @state_out by block. */
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
			if (k != i && lost[k] && way[k][i] && (!way[i][k] || is_better(p, k, i)))
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
	for (unsigned round = 0; round < rounds(1500); round++) {
		struct plain p = {.count = 1 + below(MAX_BLOCKS)};
		struct leakcheck c;
		begin(&c);
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
		for (unsigned i = 0; i < p.count; i++) {
			assert_int_equal(state_of(&c, p.start[i]), want[i]);
			if (want[i] == LEAKCHECK_DEFINITE)
				assert_int_equal(c.leader[i], i);
			if (want[i] == LEAKCHECK_INDIRECT)
				assert_int_equal(want[c.leader[i]], LEAKCHECK_DEFINITE);
		}
		leakcheck_deinit(&c);
	}
}

/*
 * An allocator's own block, which the program divides: its parts are scanned, itself it is ordinary
 * memory.
 */
static void test_divided(void **state)
{
	struct leakcheck c;
	begin(&c);
	leakcheck_add_block(&c, &(struct leakcheck_block){.addr = at(100), .size = 1024, .leaf = 1});
	block(&c, 100, 64);
	block(&c, 120, 64);
	block(&c, 140, 64);
	block(&c, 300, 64);
	set(5, at(120));   /* from outside */
	set(121, at(140)); /* from one part to another */
	set(160, at(300)); /* from memory in no part */
	run(&c);
	assert_int_equal(c.blocks.count, 4);
	assert_int_equal(state_of(&c, 100), LEAKCHECK_DEFINITE);
	assert_int_equal(state_of(&c, 120), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 140), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	leakcheck_deinit(&c);
}

/* -- much memory -- */

#define LARGE_BASE UINT64_C(0x550000000000)
#define FAR_BASE UINT64_C(0x7f1200000000)
#define LARGE_PAGES 12288u /* more than a few threads' worth of pieces, and of chunks of kept words */
#define CUT 7000u

/* One block begins 512 bytes after the start of each page, and as many lie far away. */
static taddr_t block_of(uint64_t page)
{
	return LARGE_BASE + page * PAGE_SIZE_MIN + 512;
}

/*
 * Each block leads to the next, but for one, and every third to one far away. All else in a page
 * points to the page's own block, from inside of it and from after; before it in the first page alone.
 */
static uint64_t large_word(taddr_t addr)
{
	uint64_t page = (addr - LARGE_BASE) / PAGE_SIZE_MIN, word = addr % PAGE_SIZE_MIN / 8;
	if (word == 65)
		return page != CUT && page + 1 < LARGE_PAGES ? block_of(page + 1) : 0;
	if (word == 70)
		return page % 3 == 0 ? FAR_BASE + page * 32 : page;
	if (page > 0 && (word < 64 || (page > CUT && word > 71)))
		return 0;
	return block_of(page);
}

static ssize_t read_large(void *ctx, taddr_t addr, void *buf, size_t size)
{
	uint64_t *word = buf;
	(void)ctx;
	for (size_t i = 0; i < size / sizeof(*word); i++)
		word[i] = large_word(addr + i * sizeof(*word));
	return (ssize_t)size;
}

/*
 * Several threads read, and words are processed in order: otherwise edges would start at other
 * blocks.
 */
static void test_large(void **state)
{
	struct leakcheck c;
	leakcheck_init(&c);
	for (uint32_t i = 0; i < LARGE_PAGES; i++) {
		const struct leakcheck_block near = {.addr = block_of(i), .size = 64, .leaf = 2 * i};
		const struct leakcheck_block far = {.addr = FAR_BASE + i * 32, .size = 32, .leaf = 2 * i + 1};
		leakcheck_add_block(&c, &near);
		leakcheck_add_block(&c, &far);
	}
	leakcheck_add_memory(&c, LARGE_BASE, LARGE_BASE + LARGE_PAGES * PAGE_SIZE_MIN);
	leakcheck_scan(&c, read_large, NULL);
	leakcheck_run(&c);
	assert_int_equal(c.scan.bytes, LARGE_PAGES * PAGE_SIZE_MIN);
	for (size_t i = 0; i < c.blocks.count; i++) {
		uint32_t page = c.blocks.data[i].leaf / 2;
		bool is_far = c.blocks.data[i].leaf % 2;
		if (is_far ? page % 3 != 0 : page == CUT + 1)
			assert_int_equal(c.state[i], LEAKCHECK_DEFINITE);
		else
			assert_int_equal(c.state[i], page <= CUT ? LEAKCHECK_REACHABLE : LEAKCHECK_INDIRECT);
	}
	leakcheck_deinit(&c);
}

/*
 * A prepared scan is discarded in any state; blocks added after the scan count like those
 * before.
 */
static void test_prepared(void **state)
{
	struct leakcheck c;
	begin(&c);
	block(&c, 100, 64);
	block(&c, 200, 64);
	for (unsigned i = 0; i < 50; i++)
		set(i, at(100));
	leakcheck_add_memory(&c, BASE, BASE + sizeof(memory));
	leakcheck_prepare(&c, read_memory, NULL);
	assert_true(c.scan.pool.chunks.count > 0);
	memset(memory, 0, sizeof(memory));
	set(5, at(200));
	set(201, at(300));
	block(&c, 200, 64);
	leakcheck_note_block(&c, &(struct leakcheck_block){.addr = at(300), .size = 64});
	leakcheck_note_block(&c, &(struct leakcheck_block){.addr = at(400), .size = 64});
	leakcheck_add_memory(&c, BASE, BASE + sizeof(memory));
	leakcheck_scan(&c, read_memory, NULL);
	block(&c, 400, 64);
	block(&c, 300, 64);
	leakcheck_run(&c);
	assert_int_equal(c.blocks.count, 3);
	assert_int_equal(c.scan.bytes, sizeof(memory));
	assert_int_equal(state_of(&c, 200), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 300), LEAKCHECK_REACHABLE);
	assert_int_equal(state_of(&c, 400), LEAKCHECK_DEFINITE);
	leakcheck_deinit(&c);
}

/* All that a page can hold, until chunks are full; narrow and wide ones in turn. */
static void test_pointer_store(void **state)
{
	enum { PAGES = 9000 };
	struct chunk_pool pool = {0};
	struct pointer_store store;
	static uint64_t value[PAGE_WORDS], got[PAGE_WORDS];
	chunk_pool_fill(&pool, 1);
	pointer_store_init(&store, &pool);
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < PAGES; i++) {
			uint64_t mask[PAGE_WORDS / 64] = {i, 1};
			uint32_t count = 1 + (uint32_t)(i * 7 % PAGE_WORDS);
			for (uint32_t k = 0; k < count; k++)
				value[k] = UINT64_C(0x550000000000) + i * k + (i % 4 == 1 ? (uint64_t)k << 32 : 0);
			struct pointer_page page;
			if (round == 0) {
				pointer_store_add(&store, i * PAGE_SIZE_MIN, mask, value, count);
				continue;
			}
			pointer_store_next(&store, &page, got);
			assert_int_equal(page.addr, i * PAGE_SIZE_MIN);
			assert_int_equal(page.count, count);
			assert_memory_equal(page.mask, mask, sizeof(mask));
			assert_memory_equal(got, value, count * sizeof(*value));
		}
	}
	assert_int_equal(store.reading, store.chunks.count - 1);
	assert_int_equal(pool.taken, store.chunks.count);
	pointer_store_deinit(&store);
	chunk_pool_release(&pool);
}

static void test_order(void **state)
{
	struct leakcheck_block blocks[1000];
	for (uint32_t i = 0; i < ARRAY_SIZE(blocks); i++)
		blocks[i] = (struct leakcheck_block){
			.addr = i % 10 ? hash_u64(i) >> (i % 3 * 17) : blocks[i ? i - 1 : 0].addr, .size = below(3)};
	blocks[0].addr = UINT64_MAX;
	block_order_sort(blocks, ARRAY_SIZE(blocks));
	for (size_t i = 1; i < ARRAY_SIZE(blocks); i++) {
		assert_true(blocks[i - 1].addr <= blocks[i].addr);
		if (blocks[i - 1].addr == blocks[i].addr)
			assert_true(blocks[i - 1].size >= blocks[i].size);
	}
	block_order_sort(blocks, 0);
	block_order_sort(blocks, 1);
}

static void test_nothing(void **state)
{
	struct leakcheck c;
	begin(&c);
	set(5, at(100));
	run(&c);
	assert_int_equal(c.blocks.count, 0);
	leakcheck_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_chain_from_root), cmocka_unit_test(test_register),
		cmocka_unit_test(test_spare),
		cmocka_unit_test(test_interior), cmocka_unit_test(test_better_chain), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_lost_list), cmocka_unit_test(test_cycle), cmocka_unit_test(test_cycle_after_leader),
		cmocka_unit_test(test_cycles_of_objects), cmocka_unit_test(test_cycles_of_containers),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_holders_by_rank),
		cmocka_unit_test(test_hole), cmocka_unit_test(test_ranges), cmocka_unit_test(test_index),
		cmocka_unit_test(test_index_densely),
		cmocka_unit_test(test_random), cmocka_unit_test(test_divided), cmocka_unit_test(test_large),
		cmocka_unit_test(test_prepared), cmocka_unit_test(test_pointer_store), cmocka_unit_test(test_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
