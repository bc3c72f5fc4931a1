/* Kinds are found at the lost blocks; then other blocks, and pointers, are counted by owner. */
#include "graph/graph_leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "graph/graph_sharing.h"
#include "graph/graph_view.h"

/* How many of a kind's blocks, or of its pointers, are an owner's. */
struct leak_count {
	uint32_t leak, owner;
	bool is_pointers;
	uint64_t count;
};

struct leak_search {
	const struct heap_graph *graph;
	struct graph_leaks *out;
	uint32_t *owner;        /* by number */
	uint32_t *number;       /* by node */
	HASH(uint32_t) kinds;   /* indexes of out->list */
	HASH(struct leak_count) counts;
};

/* What inspection says of a block's size or first bytes is no type: "24 bytes", "pointers". */
static bool is_type(const struct heap_graph *g, uint32_t type)
{
	static const char *const guesses[] = {"zeros", "pointers", "text"};
	const char *name = type < g->types.count ? g->types.data[type] : NULL;

	return name && (*name < '0' || *name > '9') &&
	       !text_is_among(name, guesses, ARRAY_SIZE(guesses));
}

static struct graph_leak kind_of(const struct heap_graph *g, uint32_t node)
{
	struct graph_leak kind = {.site = graph_site_of(g, node), .type = GRAPH_TYPE_MAX};

	if (!kind.site && is_type(g, g->block[node].type))
		kind.type = g->block[node].type;
	return kind;
}

/* That of the function of @site, with its index + 1 as the site. */
static struct graph_leak function_of(const struct heap_graph *g, uint32_t site)
{
	return (struct graph_leak){.site = g->sites->calls.data[site - 1].function + 1,
				   .type = GRAPH_TYPE_MAX, .by_function = true};
}

static bool is_known(const struct graph_leak *l)
{
	return l->site || l->type != GRAPH_TYPE_MAX;
}

/* The index of the kind @k; UINT32_MAX: no lost block is of it. */
static uint32_t find_kind(struct leak_search *s, const struct graph_leak *k, bool adds)
{
	const struct graph_leak *list = s->out->list.data;
	uint64_t flags = (uint64_t)k->is_joint << 1 | k->by_function;
	uint64_t hash = hash_u64(((uint64_t)k->site << 17 | k->type) << 2 | flags);
	const uint32_t *known = hash_find(&s->kinds, hash, i,
					  list[*i].site == k->site && list[*i].type == k->type &&
						  list[*i].is_joint == k->is_joint &&
						  list[*i].by_function == k->by_function);

	if (known || !adds)
		return known ? *known : UINT32_MAX;
	*vec_add(&s->out->list) = *k;
	return *hash_add(&s->kinds, hash) = (uint32_t)s->out->list.count - 1;
}

static bool is_lost(const struct heap_graph *g, uint32_t node)
{
	return g->is_lost[node / 64] >> node % 64 & 1;
}

/* -- the lost ones -- */

static void add_lost(struct leak_search *s)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;
	uint32_t lost = graph_number_of(g, graph_nodes(g) - 1);

	for (uint32_t i = lost + 1; i < t->count; i++) {
		struct graph_leak kind = {.type = GRAPH_TYPE_MAX, .is_joint = true};

		if (t->above[i] != lost || !graph_is_block(g, t->node[i]))
			continue;
		if (g->block[t->node[i]].is_leader)
			kind = kind_of(g, t->node[i]);
		uint32_t index = find_kind(s, &kind, true);
		struct graph_leak *l = &s->out->list.data[index];

		l->lost++;
		l->bytes += g->retained[i];
		l->blocks += g->retained_blocks[i];
		if (kind.site) {
			kind = function_of(g, kind.site);
			find_kind(s, &kind, true);
		}
	}
}

/* -- the counts -- */

static void count_one(struct leak_search *s, struct leak_count c)
{
	uint64_t hash = hash_u64(((uint64_t)c.leak << 32 | c.owner) * 2 + c.is_pointers);
	struct leak_count *known = hash_find(&s->counts, hash, e,
					     e->leak == c.leak && e->owner == c.owner &&
						     e->is_pointers == c.is_pointers);

	if (!known)
		*(known = hash_add(&s->counts, hash)) = c;
	known->count++;
}

static void count_other(struct leak_search *s, uint32_t block, const struct graph_leak *kind)
{
	uint32_t leak = find_kind(s, kind, false);

	if (leak == UINT32_MAX)
		return;
	s->out->list.data[leak].others++;
	count_one(s, (struct leak_count){leak, s->owner[s->number[block]], false, 0});
}

static void count_others(struct leak_search *s)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t i = 0; i < g->blocks; i++) {
		struct graph_leak kind = kind_of(g, i);

		if (is_lost(g, i) || !is_known(&kind))
			continue;
		count_other(s, i, &kind);
		if (kind.site) {
			kind = function_of(g, kind.site);
			count_other(s, i, &kind);
		}
	}
}

static void count_pointers(struct leak_search *s)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t i = 0; i < g->blocks; i++) {
		struct graph_leak kind;
		uint32_t leak;

		if (!g->block[i].is_leader)
			continue;
		kind = kind_of(g, i);
		leak = find_kind(s, &kind, false);
		for (uint32_t e = g->first[i]; leak != UINT32_MAX && e < g->first[i + 1]; e++) {
			uint32_t to = g->edge[e] >> 1;

			if (!is_lost(g, to))
				count_one(s, (struct leak_count){
					leak, s->owner[s->number[to]], true, 0});
		}
	}
}

/* Of two owners with the same count, the one that was visited first. */
static bool is_more(uint64_t count, uint32_t owner, uint64_t best, uint32_t best_owner)
{
	return count > best || (count == best && owner < best_owner);
}

static void take_counts(struct leak_search *s)
{
	for (size_t i = 0; hash_next(&s->counts.index, &i); i++) {
		const struct leak_count *c = &s->counts.slot[i];
		struct graph_leak *l = &s->out->list.data[c->leak];

		if (c->is_pointers && is_more(c->count, c->owner, l->pointers, l->target)) {
			l->pointers = c->count;
			l->target = c->owner;
		} else if (!c->is_pointers && is_more(c->count, c->owner, l->held, l->holder)) {
			l->held = c->count;
			l->holder = c->owner;
		}
	}
}

/* Takes those of functions out of the list; sites without others get theirs. */
static void take_functions(struct leak_search *s)
{
	struct graph_leak *list = s->out->list.data;
	bool *is_from_function = xcalloc(s->out->list.count, sizeof(bool));
	size_t kept = 0;

	for (size_t i = 0; i < s->out->list.count; i++) {
		struct graph_leak *l = &list[i], kind;

		if (l->by_function || !l->site || l->others > 0)
			continue;
		kind = function_of(s->graph, l->site);
		const struct graph_leak *f = &list[find_kind(s, &kind, false)];

		l->others = f->others;
		l->held = f->held;
		l->holder = f->holder;
		is_from_function[i] = true;
	}
	for (size_t i = 0; i < s->out->list.count; i++) {
		if (list[i].by_function)
			continue;
		list[kept] = list[i];
		list[kept++].by_function = is_from_function[i];
	}
	s->out->list.count = kept;
	free(is_from_function);
}

const struct graph_leak *graph_leaks_of(const struct graph_leaks *l, const struct heap_graph *g,
					uint32_t block)
{
	const struct graph_leak kind = kind_of(g, block);

	for (size_t i = 0; i < l->list.count; i++)
		if (l->list.data[i].site == kind.site && l->list.data[i].type == kind.type &&
		    !l->list.data[i].is_joint)
			return &l->list.data[i];
	return NULL;
}

static int compare_leaks(const void *a, const void *b)
{
	const struct graph_leak *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

void graph_leaks_find(const struct heap_graph *g, struct graph_leaks *out)
{
	struct leak_search s = {.graph = g, .out = out};

	*out = (struct graph_leaks){0};
	add_lost(&s);
	if (out->list.count > 0) {
		s.owner = graph_owner_numbers(g);
		s.number = graph_numbers(g);
		count_others(&s);
		count_pointers(&s);
		take_counts(&s);
		take_functions(&s);
	}
	vec_sort(&out->list, compare_leaks);
	hash_deinit(&s.kinds);
	hash_deinit(&s.counts);
	free(s.number);
	free(s.owner);
}
