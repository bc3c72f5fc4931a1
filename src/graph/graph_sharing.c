/* Bits of 64 owners at a time flow along the pointers between shared blocks. */
#include "graph/graph_sharing.h"

#include <stdlib.h>

#define AT_ONCE 64u

struct sharing_search {
	const struct heap_graph *graph;
	uint32_t *number;       /* by node */
	uint32_t *owner;        /* by number */
	uint32_t *pointers;     /* by owner's number: to shared blocks */
	uint8_t *bit;           /* by owner's number: 1 + that in this pass; 0 = none */
	uint64_t *mask;         /* by number: owners that lead to it */
	VEC(uint32_t) stack;    /* numbers whose mask has changed */
};

uint32_t *graph_owner_numbers(const struct heap_graph *g)
{
	const struct dominators *t = &g->tree;
	uint32_t *owner = xcalloc(t->count, sizeof(*owner));

	for (uint32_t i = 1; i < t->count; i++)
		owner[i] = t->above[i] != DOMINATORS_ROOT ? owner[t->above[i]] :
			   graph_is_block(g, t->node[i]) ? DOMINATORS_ROOT : i;
	return owner;
}

uint32_t *graph_numbers(const struct heap_graph *g)
{
	uint32_t *number = xcalloc((size_t)graph_nodes(g) + 1, sizeof(*number));

	for (uint32_t i = 1; i < g->tree.count; i++)
		number[g->tree.node[i]] = i;
	return number;
}

static uint32_t layer_of(const struct dominators *t, uint32_t number)
{
	uint32_t layer = 0;

	while (layer + 1 < t->layers && t->layer[layer + 1] <= number)
		layer++;
	return layer;
}

/* The number of what edge @e of number @from leads to, if that is shared; 0 = it does not count. */
static uint32_t shared_at(const struct sharing_search *s, uint32_t from, uint32_t e)
{
	const struct dominators *t = &s->graph->tree;
	uint32_t to = s->number[s->graph->edge[e] >> 1];

	return to && s->owner[to] == DOMINATORS_ROOT && layer_of(t, from) == layer_of(t, to) ?
	       to : 0;
}

static void count_pointers(struct sharing_search *s)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t i = 1; i < g->tree.count; i++) {
		uint32_t node = g->tree.node[i];

		for (uint32_t e = g->first[node]; s->owner[i] && e < g->first[node + 1]; e++)
			s->pointers[s->owner[i]] += shared_at(s, i, e) != 0;
	}
}

static void add_bits(struct sharing_search *s, uint32_t number, uint64_t bits)
{
	if ((s->mask[number] | bits) == s->mask[number])
		return;
	s->mask[number] |= bits;
	*vec_add(&s->stack) = number;
}

static void pass_bits(struct sharing_search *s, uint32_t number, uint64_t bits)
{
	const struct heap_graph *g = s->graph;
	uint32_t node = g->tree.node[number];

	for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
		uint32_t to = shared_at(s, number, e);

		if (to)
			add_bits(s, to, bits);
	}
}

/* Sums for @count owners from @first on. */
static void run_pass(struct sharing_search *s, struct graph_sharer *first, size_t count,
		     uint32_t top)
{
	const struct heap_graph *g = s->graph;
	uint64_t wanted = UINT64_MAX;

	for (uint32_t i = 0; i < g->tree.count; i++)
		s->mask[i] = 0;
	for (size_t i = 0; i < count; i++)
		s->bit[first[i].owner] = (uint8_t)(i + 1);
	for (uint32_t i = 1; i < g->tree.count; i++)
		if (s->bit[s->owner[i]])
			pass_bits(s, i, UINT64_C(1) << (s->bit[s->owner[i]] - 1));
	while (s->stack.count > 0) {
		uint32_t number = s->stack.data[--s->stack.count];

		pass_bits(s, number, s->mask[number]);
	}
	if (top != DOMINATORS_ROOT)
		wanted = s->mask[top];
	for (uint32_t i = 1; i < g->tree.count; i++)
		for (uint64_t bits = s->mask[i] & wanted; bits; bits &= bits - 1) {
			struct graph_sharer *o = &first[__builtin_ctzll(bits)];

			o->blocks++;
			o->bytes += graph_size(g, g->tree.node[i]);
		}
	for (size_t i = 0; i < count; i++)
		s->bit[first[i].owner] = 0;
}

static int compare_sharers(const void *a, const void *b)
{
	const struct graph_sharer *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* The owners with pointers to shared blocks, those with most first. */
static void list_owners(const struct sharing_search *s, struct graph_sharing *out)
{
	for (uint32_t i = 1; i < s->graph->tree.count; i++)
		if (s->pointers[i])
			*vec_add(&out->list) = (struct graph_sharer){i, s->pointers[i], 0};
	vec_sort(&out->list, compare_sharers);
	out->others = out->list.count - MIN(out->list.count, GRAPH_SHARERS_MAX);
	out->list.count = MIN(out->list.count, GRAPH_SHARERS_MAX);
	for (size_t i = 0; i < out->list.count; i++)
		out->list.data[i].bytes = 0;
}

static void search(const struct heap_graph *g, uint32_t top, struct graph_sharing *out)
{
	uint32_t count = g->tree.count;
	struct sharing_search s = {.graph = g, .owner = graph_owner_numbers(g),
				   .number = graph_numbers(g)};
	size_t kept = 0;

	*out = (struct graph_sharing){0};
	s.pointers = xcalloc(count, sizeof(*s.pointers));
	s.bit = xcalloc(count, sizeof(*s.bit));
	s.mask = xcalloc(count, sizeof(*s.mask));
	count_pointers(&s);
	list_owners(&s, out);
	for (size_t i = 0; i < out->list.count; i += AT_ONCE)
		run_pass(&s, &out->list.data[i], MIN(out->list.count - i, (size_t)AT_ONCE), top);
	for (size_t i = 0; i < out->list.count; i++)
		if (out->list.data[i].blocks > 0)
			out->list.data[kept++] = out->list.data[i];
	out->list.count = kept;
	vec_sort(&out->list, compare_sharers);
	vec_deinit(&s.stack);
	free(s.number);
	free(s.owner);
	free(s.pointers);
	free(s.bit);
	free(s.mask);
}

struct graph_sharing *graph_sharing_new(void)
{
	return xcalloc(1, sizeof(struct graph_sharing));
}

void graph_sharing_free(struct graph_sharing *s)
{
	if (s)
		vec_deinit(&s->list);
	free(s);
}

static void copy_sharing(const struct graph_sharing *from, struct graph_sharing *to)
{
	*to = (struct graph_sharing){.others = from->others};
	for (size_t i = 0; i < from->list.count; i++)
		*vec_add(&to->list) = from->list.data[i];
}

void graph_sharing_find(const struct heap_graph *g, uint32_t top, struct graph_sharing *out)
{
	bool is_kept = g->sharing && top == DOMINATORS_ROOT;

	if (is_kept && g->sharing->is_found) {
		copy_sharing(g->sharing, out);
		return;
	}
	search(g, top, out);
	if (is_kept) {
		copy_sharing(out, g->sharing);
		g->sharing->is_found = true;
	}
}
