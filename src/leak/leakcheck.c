/*
 * Computes reachability from scanned words; of lost blocks that point to each other, finds their
 * leader.
 */
#include "leak/leakcheck.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "leak/block_index.h"

/*
 * Lost blocks that point to each other: which of them leads the others; leakcheck.h says by what
 * rule.
 */

/* The blocks and their pointers, as in struct leakcheck. */
struct leak_graph {
	const struct leakcheck_block *blocks;
	uint32_t count;
	const uint32_t *edge;        /* block << 1 | bit */
	const size_t *first_edge;    /* by block, and one more */
	const uint8_t *state;
	/*
	 * States: of lost blocks; of the one of each group that leads to all others of it. All
	 * blocks that lead to a leader are in one cycle with it.
	 */
	uint8_t lost, leader;
	uint32_t (*kind)(void *ctx, uint32_t leaf); /* NULL: the leaf itself */
	/* whether blocks of a kind are texts, which never lead; NULL: none are */
	bool (*is_text)(void *ctx, uint32_t kind);
	void *kind_ctx;
};

/*
 * The cycle of a leader is all lost blocks that lead to it: they are found by walking the edges
 * between lost blocks backwards. Most programs lose no cycle; then the edges are not reversed.
 *
 *	1. reverse the edges between lost blocks
 *	2. list the members of each leader's cycle
 *	3. the rank of a member is the number of kinds that it points to, its own included; a kind
 *	   has the highest rank of its members in all cycles, but texts have 0
 *	4. the best member of each cycle leads it
 */

#define KINDS_MAX 64u /* a rank is at most this */

struct cycles {
	const struct leak_graph *graph;
	size_t *first;             /* by block: of its edges in from; one more at the end */
	uint32_t *from;            /* who points to it */
	VEC(uint32_t) member;      /* of all cycles, one after the other */
	VEC(size_t) start;         /* of each cycle's members */
	uint64_t *seen;            /* a bit by block: is a member */
	uint8_t *rank;             /* by kind */
	uint32_t ranks;
};

static bool is_lost(const struct leak_graph *g, uint32_t block)
{
	return g->state[block] == g->lost || g->state[block] == g->leader;
}

static uint32_t kind_of(const struct leak_graph *g, uint32_t block)
{
	uint32_t leaf = g->blocks[block].leaf;

	return g->kind ? g->kind(g->kind_ctx, leaf) : leaf;
}

/* -- reversed edges -- */

static bool is_counted(const struct leak_graph *g, uint32_t block, size_t e)
{
	uint32_t to = g->edge[e] >> 1;

	return to != block && is_lost(g, to);
}

static void count_edges(struct cycles *c)
{
	const struct leak_graph *g = c->graph;

	for (uint32_t i = 0; i < g->count; i++)
		for (size_t e = g->first_edge[i]; is_lost(g, i) && e < g->first_edge[i + 1]; e++)
			c->first[(g->edge[e] >> 1) + 1] += is_counted(g, i, e);
	for (uint32_t i = 0; i < g->count; i++)
		c->first[i + 1] += c->first[i];
}

static void reverse_edges(struct cycles *c)
{
	const struct leak_graph *g = c->graph;

	c->first = xcalloc((size_t)g->count + 2, sizeof(*c->first));
	count_edges(c);
	c->from = xcalloc(c->first[g->count] + 1, sizeof(*c->from));
	size_t *next = xmemdup(c->first, ((size_t)g->count + 1) * sizeof(*next));

	for (uint32_t i = 0; i < g->count; i++)
		for (size_t e = g->first_edge[i]; is_lost(g, i) && e < g->first_edge[i + 1]; e++)
			if (is_counted(g, i, e))
				c->from[next[g->edge[e] >> 1]++] = i;
	free(next);
}

/* -- members -- */

static void add_member(struct cycles *c, uint32_t block)
{
	uint64_t bit = UINT64_C(1) << block % 64;

	if (c->seen[block / 64] & bit)
		return;
	c->seen[block / 64] |= bit;
	*vec_add(&c->member) = block;
}

static void list_members(struct cycles *c, uint32_t leader)
{
	if (c->first[leader] == c->first[leader + 1])
		return;
	size_t at = c->member.count;

	*vec_add(&c->start) = at;
	add_member(c, leader);
	for (; at < c->member.count; at++) {
		uint32_t block = c->member.data[at];

		for (size_t i = c->first[block]; i < c->first[block + 1]; i++)
			add_member(c, c->from[i]);
	}
}

/* -- ranks -- */

static uint8_t count_kinds(const struct leak_graph *g, uint32_t block)
{
	uint32_t kind[KINDS_MAX] = {kind_of(g, block)};
	size_t end = g->first_edge[block + 1];
	uint8_t count = 1;

	for (size_t e = g->first_edge[block]; e < end && count < KINDS_MAX; e++) {
		uint32_t k = kind_of(g, g->edge[e] >> 1);
		uint8_t i = 0;

		while (i < count && kind[i] != k)
			i++;
		if (i == count)
			kind[count++] = k;
	}
	return count;
}

static void rank_kinds(struct cycles *c)
{
	const struct leak_graph *g = c->graph;

	for (size_t i = 0; i < c->member.count; i++)
		c->ranks = MAX(c->ranks, kind_of(g, c->member.data[i]) + 1);
	c->rank = xcalloc((size_t)c->ranks + 1, sizeof(*c->rank));
	for (size_t i = 0; i < c->member.count; i++) {
		uint32_t block = c->member.data[i], kind = kind_of(g, block);
		uint8_t *rank = &c->rank[kind];

		if (*rank == 0 && g->is_text && g->is_text(g->kind_ctx, kind))
			continue;
		*rank = MAX(*rank, count_kinds(g, block));
	}
}

static uint64_t time_us(const struct leakcheck_block *b)
{
	return b->time * UINT64_C(1000) + b->us;
}

/*
 * Whether @a leads rather than @b. Where the times are equal, the order in which call paths were
 * taken first is that of the blocks in most programs; the blocks from before an attach have no
 * times, and their paths no order.
 */
static bool is_better(const struct cycles *c, uint32_t a, uint32_t b)
{
	const struct leak_graph *g = c->graph;
	uint8_t rank_a = c->rank[kind_of(g, a)], rank_b = c->rank[kind_of(g, b)];
	uint64_t time_a = time_us(&g->blocks[a]), time_b = time_us(&g->blocks[b]);

	if (!rank_a != !rank_b)
		return rank_a > rank_b;
	if (time_a != time_b)
		return time_a < time_b;
	if (time_a == 0 && rank_a != rank_b)
		return rank_a > rank_b;
	if (g->blocks[a].leaf != g->blocks[b].leaf)
		return g->blocks[a].leaf < g->blocks[b].leaf;
	return a < b;
}

/* The first member of each cycle is the one that was its leader. */
static void choose(const struct cycles *c, uint32_t *leader)
{
	for (size_t i = 0; i < c->start.count; i++) {
		size_t end = i + 1 < c->start.count ? c->start.data[i + 1] : c->member.count;
		uint32_t best = c->member.data[c->start.data[i]];

		for (size_t k = c->start.data[i]; k < end; k++)
			if (is_better(c, c->member.data[k], best))
				best = c->member.data[k];
		leader[c->member.data[c->start.data[i]]] = best;
	}
}

/* Whether a lost block points to a leader: then that is in a cycle. */
static bool has_cycles(const struct leak_graph *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		for (size_t e = g->first_edge[i]; is_lost(g, i) && e < g->first_edge[i + 1]; e++)
			if (is_counted(g, i, e) && g->state[g->edge[e] >> 1] == g->leader)
				return true;
	return false;
}

/* Sets leader[i] of each block i in state g->leader to the best of its cycle, often itself. */
static void leak_cycles_lead(const struct leak_graph *g, uint32_t *leader)
{
	struct cycles c = {.graph = g};

	if (!has_cycles(g))
		return;
	reverse_edges(&c);
	c.seen = xcalloc((size_t)g->count / 64 + 1, sizeof(*c.seen));
	for (uint32_t i = 0; i < g->count; i++)
		if (g->state[i] == g->leader)
			list_members(&c, i);
	rank_kinds(&c);
	choose(&c, leader);
	vec_deinit(&c.member);
	vec_deinit(&c.start);
	free(c.seen);
	free(c.rank);
	free(c.first);
	free(c.from);
}

/*
 * Computes reachability from scanned words. leakcheck.h defines the results.
 *
 *	1. blocks are sorted and indexed
 *	2. each word is looked up once: from a block, it becomes an edge to another (edges of one
 *	   block are contiguous); from elsewhere, a root; words of free memory are ignored
 *	3. roots and all blocks reachable from them are marked
 *	4. the rest, in the order of addresses: an unclaimed block becomes a leader and claims all
 *	   that it leads to. A leader that no later one leads to is reached by nothing, or by its
 *	   own followers only. So leaders claim once more, last one first, and one that is then
 *	   unclaimed is definitely lost
 *	5. of each cycle such a leader is in (leakcheck.c), the best block becomes the leader
 */

/* An edge or root: block << 1 | whether it points inside the block. */
#define IS_INTERIOR 1u
#define NO_EDGE UINT32_MAX

/* States while it runs: unreached; claimed by a leader; claimed by a final leader. */
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
	vec_deinit(&c->others);
	vec_deinit(&c->outer);
	vec_deinit(&c->spare);
	free(c->state);
	free(c->leader);
	free(c->holder);
	c->state = NULL;
	c->leader = NULL;
	c->holder = NULL;
	pointer_scan_deinit(&c->scan);
}

static bool is_in_range(const struct leakcheck_block *b)
{
	return b->addr > 0 && leakcheck_block_end(b) <= UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS;
}

void leakcheck_expect(struct leakcheck *c, uint64_t blocks)
{
	if (c->blocks.capacity >= blocks)
		return;
	vec_reserve(&c->blocks, blocks + blocks / 16); /* more come until it is stopped */
	huge_advise(c->blocks.data, c->blocks.capacity * sizeof(*c->blocks.data));
}

void leakcheck_note_block(struct leakcheck *c, const struct leakcheck_block *block)
{
	if (is_in_range(block))
		pointer_scan_add_target(&c->scan, block->addr, leakcheck_block_end(block));
}

void leakcheck_add_block(struct leakcheck *c, const struct leakcheck_block *block)
{
	*vec_add(&c->blocks) = *block;
	leakcheck_note_block(c, block);
}

void leakcheck_add_other(struct leakcheck *c, taddr_t start, taddr_t end)
{
	*vec_add(&c->others) = (struct addr_range){start, end};
}

void leakcheck_add_spare(struct leakcheck *c, taddr_t start, taddr_t end)
{
	*vec_add(&c->spare) = (struct addr_range){start, end};
}

void leakcheck_add_root(struct leakcheck *c, uint64_t word)
{
	*vec_add(&c->roots) = word;
}

void leakcheck_add_memory(struct leakcheck *c, taddr_t start, taddr_t end)
{
	pointer_scan_add_range(&c->scan, start, end);
}

void leakcheck_add_heap(struct leakcheck *c, taddr_t start, taddr_t end, taddr_t top)
{
	pointer_scan_add_heap(&c->scan, start, end, top);
}

void leakcheck_prepare(struct leakcheck *c, memory_read_fn *read, void *ctx)
{
	struct leakcheck_block *rest = &c->blocks.data[c->blocks.count];

	pointer_scan_prepare(&c->scan, read, ctx);
	huge_touch(rest, (c->blocks.capacity - c->blocks.count) * sizeof(*rest));
	c->blocks.count = 0; /* their array must not move */
}

void leakcheck_scan(struct leakcheck *c, memory_read_fn *read, void *ctx)
{
	pointer_scan_run(&c->scan, read, ctx);
}

/* Of nested blocks only the innermost ones are judged. */
static void drop_outer_blocks(struct leakcheck *c)
{
	size_t kept = 0;
	struct leakcheck_block *block = c->blocks.data;

	for (size_t i = 0; i < c->blocks.count; i++) {
		while (kept > 0 && leakcheck_block_end(&block[kept - 1]) > block[i].addr) {
			const struct leakcheck_block *outer = &block[--kept];

			leakcheck_add_other(c, outer->addr, leakcheck_block_end(outer));
			*vec_add(&c->outer) = *outer;
		}
		block[kept++] = block[i];
	}
	c->blocks.count = kept;
}

/* Addresses beyond the index sort last. These blocks are not indexed, and count as reachable. */
static uint32_t index_blocks(struct leakcheck *c)
{
	uint32_t count = 0;

	CHECK(c->blocks.count < UINT32_C(1) << 31);
	block_order_sort(c->blocks.data, c->blocks.count);
	drop_outer_blocks(c);
	while (count < c->blocks.count && is_in_range(&c->blocks.data[count]))
		count++;
	block_index_init(&c->index, c->blocks.data, count);
	for (size_t i = count; i < c->blocks.count; i++)
		c->state[i] = LEAKCHECK_REACHABLE;
	return count;
}

/* -- unused memory -- */

/* Adds the parts of [start, end) that are in no other range. *at: the first that may overlap. */
static void add_unused(struct leakcheck *c, taddr_t start, taddr_t end, size_t *at)
{
	for (; *at < c->others.count && c->others.data[*at].start < end; ++*at) {
		struct addr_range other = c->others.data[*at];

		if (other.start > start)
			*vec_add(&c->unused) = (struct addr_range){start, other.start};
		start = MAX(start, other.end);
		if (start >= end)
			return;
	}
	*vec_add(&c->unused) = (struct addr_range){start, end};
}

static void find_unused(struct leakcheck *c)
{
	size_t at = 0;

	vec_sort(&c->others, taddr_compare);
	for (size_t i = 0; i < c->scan.queue.walks.count; i++) {
		const struct heap_walk *w = &c->scan.queue.walks.data[i];

		if (w->state != HEAP_WALK_DONE)
			continue;
		if (c->knows_all)
			add_unused(c, w->start, w->end, &at);
		for (size_t k = 0; !c->knows_all && k < w->free.count; k++)
			*vec_add(&c->unused) = w->free.data[k];
	}
}

/* The edge to the block that @word points to, or NO_EDGE. @place: its place in the index. */
static uint32_t find_edge(const struct leakcheck *c, uint64_t place, uint64_t word)
{
	bool is_start;
	uint32_t to = block_index_at(&c->index, place, word, &is_start);

	return to == BLOCK_INDEX_NONE ? NO_EDGE : to << 1 | (is_start ? 0 : IS_INTERIOR);
}

/* -- marking -- */

static void push(struct leakcheck *c, uint32_t block, enum leakcheck_state state)
{
	c->state[block] = (uint8_t)state;
	*vec_add(&c->stack) = block;
}

/* A holder: what it is, and a block or an address. */
#define HOLDER(kind, value) ((uint64_t)(kind) << 60 | (value))
#define HOLDER_VALUE ((UINT64_C(1) << 60) - 1)

/*
 * @edge comes from @holder, a root or a block; @is_certain: that one is not just possibly reached.
 */
static void reach(struct leakcheck *c, uint32_t edge, bool is_certain, uint64_t holder)
{
	uint32_t to = edge >> 1;

	if (c->state[to] == LEAKCHECK_REACHABLE)
		return;
	if (is_certain && !(edge & IS_INTERIOR))
		push(c, to, LEAKCHECK_REACHABLE);
	else if (c->state[to] == UNREACHED)
		push(c, to, LEAKCHECK_POSSIBLE);
	else
		return;
	if (c->holder)
		c->holder[to] = holder;
}

static void mark_reachable(struct leakcheck *c)
{
	while (c->stack.count > 0) {
		uint32_t block = c->stack.data[--c->stack.count];
		bool is_certain = c->state[block] == LEAKCHECK_REACHABLE;

		for (size_t e = c->first_edge[block]; e < c->first_edge[block + 1]; e++)
			reach(c, c->edge[e], is_certain,
			      HOLDER(LEAKCHECK_HELD_BY_BLOCK, block));
	}
}

/* Holders are those of the lowest rank: all that one leads to is marked before the next. */
static void mark_by_rank(struct leakcheck *c)
{
	for (uint32_t rank = 0; c->holder && rank <= LEAKCHECK_RANKS; rank++) {
		for (size_t i = 0; i < c->ranked.count; i++)
			if (c->ranked.data[i].rank == rank)
				reach(c, c->ranked.data[i].edge, true, c->ranked.data[i].holder);
		mark_reachable(c);
	}
	vec_deinit(&c->ranked);
}

/* Changes all blocks in state @from that @leader reaches, except itself, to @to. */
static void claim(struct leakcheck *c, uint32_t leader, enum leakcheck_state from,
		  enum leakcheck_state to)
{
	*vec_add(&c->stack) = leader;
	while (c->stack.count > 0) {
		uint32_t block = c->stack.data[--c->stack.count];

		for (size_t e = c->first_edge[block]; e < c->first_edge[block + 1]; e++) {
			uint32_t next = c->edge[e] >> 1;

			if (c->state[next] != from || next == leader)
				continue;
			push(c, next, to);
			c->leader[next] = leader;
		}
	}
}

/* Replaces leaders by the best blocks of their cycles. */
static void choose_leaders(struct leakcheck *c, uint32_t count)
{
	const struct leak_graph graph = {
		.blocks = c->blocks.data, .count = count, .edge = c->edge,
		.first_edge = c->first_edge, .state = c->state, .lost = CLAIMED_AGAIN,
		.leader = LEAKCHECK_DEFINITE, .kind = c->kind, .is_text = c->is_text,
		.kind_ctx = c->kind_ctx,
	};

	leak_cycles_lead(&graph, c->leader);
	for (uint32_t i = 0; i < count; i++) {
		if (c->state[i] == CLAIMED_AGAIN)
			c->leader[i] = c->leader[c->leader[i]];
	}
	for (uint32_t i = 0; i < count; i++) {
		if (c->state[i] != LEAKCHECK_DEFINITE || c->leader[i] == i)
			continue;
		c->state[c->leader[i]] = LEAKCHECK_DEFINITE;
		c->state[i] = LEAKCHECK_INDIRECT;
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
		c->leader[leaders.data[i]] = leaders.data[i];
	}
	if (leaders.count > 0)
		choose_leaders(c, count);
	for (uint32_t i = 0; i < count; i++)
		if (c->state[i] == CLAIMED_AGAIN)
			c->state[i] = LEAKCHECK_INDIRECT;
	vec_deinit(&leaders);
}

/* -- words to edges -- */

/* Current position in blocks and edges, while words are processed in ascending order. */
struct edge_cursor {
	uint32_t block;      /* the first block that does not end before the word */
	uint32_t count;
	size_t edges;
	size_t unused;       /* the first unused range that does not end before the word */
	size_t spare;        /* likewise */
};

/* *at: the first of @part that may have @addr. */
static bool has_part(const struct addr_range *part, size_t count, size_t *at, taddr_t addr)
{
	while (*at < count && part[*at].end <= addr)
		++*at;
	return *at < count && part[*at].start <= addr;
}

/* A program may use the whole chunk (malloc_usable_size). */
static taddr_t end_of_words(const struct leakcheck_block *b, bool is_glibc)
{
	taddr_t end = leakcheck_block_end(b);

	return is_glibc ? MAX(end, b->addr + heap_usable_size(b->size)) : end;
}

/* Without holders the order of roots does not matter. */
static void pass_root(struct leakcheck *c, uint32_t edge, uint32_t rank, uint64_t holder)
{
	if (c->holder)
		*vec_add(&c->ranked) = (struct leakcheck_root){edge, rank, holder};
	else
		reach(c, edge, true, holder);
}

/* The word at @addr is @edge: an edge of the block that contains it, a root, or ignored. */
static void pass_edge(struct leakcheck *c, struct edge_cursor *at, taddr_t addr, uint32_t edge)
{
	const struct leakcheck_block *block = c->blocks.data;
	bool is_free = has_part(c->unused.data, c->unused.count, &at->unused, addr);
	bool is_spare = has_part(c->spare.data, c->spare.count, &at->spare, addr);

	while (at->block < at->count && end_of_words(&block[at->block], is_free) <= addr)
		c->first_edge[++at->block] = at->edges;
	bool is_outside = at->block == at->count || block[at->block].addr > addr;
	/*
	 * Most programs use no more than they requested: beyond that there are stale words of free
	 * chunks. These point to other chunks, so to the inside of a block but never to its start.
	 */
	bool is_old = !is_outside && is_free && edge & IS_INTERIOR &&
		      addr + sizeof(uint64_t) > leakcheck_block_end(&block[at->block]);

	if (is_outside && !is_free && !is_spare)
		pass_root(c, edge, c->holder && c->rank ? c->rank(c->rank_ctx, addr) : 0,
			  HOLDER(LEAKCHECK_HELD_BY_MEMORY, addr));
	else if (!is_outside && !is_old)
		c->edge[at->edges++] = edge;
}

/*
 * All look-ups of a page are started before the first one is completed, so that their cache misses
 * overlap.
 */
static void pass_page(struct leakcheck *c, struct edge_cursor *at, const struct pointer_page *page,
		      const uint64_t *value)
{
	uint64_t place[PAGE_WORDS];
	size_t v = 0;

	for (uint32_t i = 0; i < page->count; i++)
		place[i] = block_index_place(&c->index, value[i]);
	for (size_t k = 0; k < ARRAY_SIZE(page->mask); k++)
		for (uint64_t mask = page->mask[k]; mask; mask &= mask - 1, v++) {
			uint64_t word = k * 64 + (uint64_t)__builtin_ctzll(mask);
			uint32_t edge = find_edge(c, place[v], value[v]);

			if (edge != NO_EDGE)
				pass_edge(c, at, page->addr + word * sizeof(uint64_t), edge);
		}
}

static void pass_words(struct leakcheck *c, uint32_t count)
{
	struct edge_cursor at = {.count = count};
	struct pointer_page page;
	uint64_t value[PAGE_WORDS];

	while (pointer_scan_take(&c->scan, &page, value))
		pass_page(c, &at, &page, value);
	while (at.block < at.count)
		c->first_edge[++at.block] = at.edges;
}

static void pass_roots(struct leakcheck *c)
{
	for (size_t i = 0; i < c->roots.count; i++) {
		uint64_t word = c->roots.data[i];
		uint32_t edge = find_edge(c, block_index_place(&c->index, word), word);

		if (edge != NO_EDGE)
			pass_root(c, edge, LEAKCHECK_RANKS, HOLDER(LEAKCHECK_HELD_BY_REGISTER, 0));
	}
}

void leakcheck_run(struct leakcheck *c)
{
	size_t edge_bytes = c->scan.values * sizeof(*c->edge) + 1;

	free(c->state);
	c->state = xcalloc(c->blocks.count + 1, sizeof(*c->state));
	free(c->leader);
	free(c->holder);
	c->leader = xcalloc(c->blocks.count + 1, sizeof(*c->leader));
	c->holder = c->wants_holders ? xcalloc(c->blocks.count + 1, sizeof(*c->holder)) : NULL;
	uint32_t count = index_blocks(c);

	c->edge = huge_alloc(edge_bytes);
	c->first_edge = xcalloc((size_t)count + 1, sizeof(*c->first_edge));
	find_unused(c);
	pass_roots(c);
	pass_words(c, count);
	mark_by_rank(c);
	mark_reachable(c);
	judge_lost(c, count);
	block_index_deinit(&c->index);
	vec_deinit(&c->stack);
	vec_deinit(&c->unused);
	huge_free(c->edge, edge_bytes);
	free(c->first_edge);
	c->edge = NULL;
}

enum leakcheck_holder leakcheck_holder(const struct leakcheck *c, uint32_t block,
				       uint64_t *value_out)
{
	*value_out = c->holder[block] & HOLDER_VALUE;
	return (enum leakcheck_holder)(c->holder[block] >> 60);
}
