/*
 * The cycle of a leader is all lost blocks that lead to it: they are found by walking the edges
 * between lost blocks backwards. Most programs lose no cycle; then the edges are not reversed.
 *
 *	1. reverse the edges between lost blocks
 *	2. list the members of each leader's cycle
 *	3. the rank of a member is the number of other kinds that it points to; a kind has the
 *	   highest rank of its members in all cycles
 *	4. the best member of each cycle leads it
 */
#include "leak/leak_cycles.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

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
	return count - 1;
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

/* Whether @a leads rather than @b. */
static bool is_better(const struct cycles *c, uint32_t a, uint32_t b)
{
	const struct leak_graph *g = c->graph;
	uint8_t rank_a = c->rank[kind_of(g, a)], rank_b = c->rank[kind_of(g, b)];

	if (rank_a != rank_b)
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

void leak_cycles_lead(const struct leak_graph *g, uint32_t *leader)
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
