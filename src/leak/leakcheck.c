/*
 * Reachability over scanned words; leakcheck.h has the meaning.
 *
 *	1. blocks are sorted and indexed
 *	2. each word is looked up once: from a block, it becomes an edge to another (in
 *	   the place of the word: words of one block stand together); from elsewhere,
 *	   a root
 *	3. roots and what they lead to are marked
 *	4. the rest, in the order of addresses: a block that nobody has claimed becomes a
 *	   leader and claims all that it leads to. A leader that no later one leads to is
 *	   led to by nothing, or by its own followers only: so leaders claim once more,
 *	   the last first, and who is then not claimed is definitely lost
 */
#include "leak/leakcheck.h"


#include "base/log.h"

/* An edge or root: block << 1 | whether it points to the block's inside. */
#define IS_INTERIOR 1u

/* States while it runs: nothing leads there; claimed by a leader; claimed by one that stays. */
#define UNREACHED LEAKCHECK_DEFINITE
#define CLAIMED LEAKCHECK_INDIRECT
#define CLAIMED_AGAIN ((enum leakcheck_state)(LEAKCHECK_REACHABLE + 1))

void leakcheck_init(struct leakcheck *c)
{
	*c = (struct leakcheck){0};
	pointer_scan_init(&c->scan);
}

void leakcheck_deinit(struct leakcheck *c)
{
	vec_deinit(&c->blocks);
	vec_deinit(&c->roots);
	free(c->state);
	c->state = NULL;
	pointer_scan_deinit(&c->scan);
}

static taddr_t block_end(const struct leakcheck_block *b)
{
	taddr_t end;

	return __builtin_add_overflow(b->addr, MAX(b->size, 1u), &end) ? UINT64_MAX : end;
}

static bool is_in_range(const struct leakcheck_block *b)
{
	return b->addr > 0 && block_end(b) <= UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS;
}

void leakcheck_add_block(struct leakcheck *c, const struct leakcheck_block *block)
{
	*vec_add(&c->blocks) = *block;
	if (is_in_range(block))
		pointer_scan_add_target(&c->scan, block->addr, block_end(block));
}

void leakcheck_add_root(struct leakcheck *c, uint64_t word)
{
	*vec_add(&c->roots) = word;
}

void leakcheck_scan(struct leakcheck *c, taddr_t start, taddr_t end, pointer_read_fn *read,
		    void *ctx)
{
	pointer_scan_range(&c->scan, start, end, read, ctx);
}

static int compare_blocks(const void *a, const void *b)
{
	const struct leakcheck_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size; /* what holds others comes before them */
}

/* Of blocks that lie in each other, only the innermost stay. */
static void drop_outer_blocks(struct leakcheck *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->blocks.count; i++) {
		while (kept > 0 && block_end(&c->blocks.data[kept - 1]) > c->blocks.data[i].addr)
			kept--;
		c->blocks.data[kept++] = c->blocks.data[i];
	}
	c->blocks.count = kept;
}

/* Addresses beyond the index sort last: they are not in it, and taken as reachable. */
static uint32_t index_blocks(struct leakcheck *c)
{
	uint32_t count = 0;

	CHECK(c->blocks.count < UINT32_C(1) << 31);
	if (c->blocks.count > 1)
		qsort(c->blocks.data, c->blocks.count, sizeof(*c->blocks.data), compare_blocks);
	drop_outer_blocks(c);
	c->span = xcalloc(c->blocks.count + 1, sizeof(*c->span));
	for (; count < c->blocks.count && is_in_range(&c->blocks.data[count]); count++)
		c->span[count] = (struct block_span){c->blocks.data[count].addr,
						     block_end(&c->blocks.data[count])};
	block_index_init(&c->index, c->span, count);
	for (size_t i = count; i < c->blocks.count; i++)
		c->state[i] = LEAKCHECK_REACHABLE;
	return count;
}

/* 0, or the edge to where @word points, + 1. */
static uint64_t find_edge(const struct leakcheck *c, uint64_t word)
{
	uint32_t to = block_index_find(&c->index, word);

	if (to == BLOCK_INDEX_NONE)
		return 0;
	return ((uint64_t)to << 1 | (word == c->span[to].start ? 0 : IS_INTERIOR)) + 1;
}

/* -- marking -- */

static void push(struct leakcheck *c, uint32_t block, enum leakcheck_state state)
{
	c->state[block] = (uint8_t)state;
	*vec_add(&c->stack) = block;
}

/* @edge comes from a root or a block; @is_certain: not from one that is only possibly reached. */
static void reach(struct leakcheck *c, uint64_t edge, bool is_certain)
{
	uint32_t to = (uint32_t)(edge >> 1);

	if (c->state[to] == LEAKCHECK_REACHABLE)
		return;
	if (is_certain && !(edge & IS_INTERIOR))
		push(c, to, LEAKCHECK_REACHABLE);
	else if (c->state[to] == UNREACHED)
		push(c, to, LEAKCHECK_POSSIBLE);
}

static void mark_reachable(struct leakcheck *c)
{
	while (c->stack.count > 0) {
		uint32_t block = c->stack.data[--c->stack.count];
		bool is_certain = c->state[block] == LEAKCHECK_REACHABLE;

		for (size_t e = c->first_edge[block]; e < c->first_edge[block + 1]; e++)
			reach(c, c->scan.values.data[e], is_certain);
	}
}

/* All blocks of state @from that @leader leads to, itself excepted, become @to. */
static void claim(struct leakcheck *c, uint32_t leader, enum leakcheck_state from,
		  enum leakcheck_state to)
{
	*vec_add(&c->stack) = leader;
	while (c->stack.count > 0) {
		uint32_t block = c->stack.data[--c->stack.count];

		for (size_t e = c->first_edge[block]; e < c->first_edge[block + 1]; e++) {
			uint32_t next = (uint32_t)(c->scan.values.data[e] >> 1);

			if (c->state[next] == from && next != leader)
				push(c, next, to);
		}
	}
}

static void judge_lost(struct leakcheck *c, uint32_t count)
{
	VEC(uint32_t) leaders = {0};

	for (uint32_t i = 0; i < count; i++) {
		if (c->state[i] != UNREACHED)
			continue;
		claim(c, i, UNREACHED, CLAIMED);
		c->state[i] = CLAIMED;
		*vec_add(&leaders) = i;
	}
	for (size_t i = leaders.count; i-- > 0;) {
		if (c->state[leaders.data[i]] != CLAIMED)
			continue;
		claim(c, leaders.data[i], CLAIMED, CLAIMED_AGAIN);
		c->state[leaders.data[i]] = LEAKCHECK_DEFINITE;
	}
	for (uint32_t i = 0; i < count; i++)
		if (c->state[i] == CLAIMED_AGAIN)
			c->state[i] = LEAKCHECK_INDIRECT;
	vec_deinit(&leaders);
}

/* -- words to edges -- */

/* Position among blocks and edges while words pass in the order of their addresses. */
struct cursor {
	uint32_t block;      /* the first that does not end before the word */
	uint32_t count;
	size_t edges;
};

/* The word @value at @addr: an edge of the block it stands in, or a root. */
static void pass_word(struct leakcheck *c, struct cursor *at, taddr_t addr, uint64_t value)
{
	while (at->block < at->count && c->span[at->block].end <= addr)
		c->first_edge[++at->block] = at->edges;
	uint64_t edge = find_edge(c, value);

	if (!edge)
		return;
	if (at->block < at->count && c->span[at->block].start <= addr)
		c->scan.values.data[at->edges++] = edge - 1; /* at or before the word itself */
	else
		reach(c, edge - 1, true);
}

static void pass_words(struct leakcheck *c, uint32_t count)
{
	struct cursor at = {.count = count};
	size_t v = 0;

	for (size_t i = 0; i < c->scan.pages.count; i++) {
		const struct pointer_page *page = &c->scan.pages.data[i];

		CHECK_DEBUG(i == 0 || page->addr >= page[-1].addr);
		for (size_t k = 0; k < ARRAY_SIZE(page->mask); k++)
			for (uint64_t mask = page->mask[k]; mask; mask &= mask - 1) {
				uint64_t word = k * 64 + (uint64_t)__builtin_ctzll(mask);
				pass_word(c, &at, page->addr + word * sizeof(uint64_t),
					  c->scan.values.data[v++]);
			}
	}
	while (at.block < at.count)
		c->first_edge[++at.block] = at.edges;
}

void leakcheck_run(struct leakcheck *c)
{
	free(c->state);
	c->state = xcalloc(c->blocks.count + 1, sizeof(*c->state));
	uint32_t count = index_blocks(c);

	c->first_edge = xcalloc((size_t)count + 1, sizeof(*c->first_edge));
	for (size_t i = 0; i < c->roots.count; i++) {
		uint64_t edge = find_edge(c, c->roots.data[i]);
		if (edge)
			reach(c, edge - 1, true);
	}
	pass_words(c, count);
	mark_reachable(c);
	judge_lost(c, count);
	block_index_deinit(&c->index);
	vec_deinit(&c->stack);
	free(c->first_edge);
	free(c->span);
}
