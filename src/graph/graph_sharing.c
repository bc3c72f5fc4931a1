/* Bits of 64 owners at a time flow along the pointers between shared blocks. */
#include "graph/graph_sharing.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define AT_ONCE 64u

/*
 * What the tree knows of shared blocks is enough: those on top, and which other children of the
 * root lead to each (dominators.shared). What they dominate has the same owners.
 */
struct sharing_search {
	const struct heap_graph *graph;
	/* by number n: next[first[n]] to next[first[n + 1] - 1] are what it leads to */
	uint32_t *first, *next;
	uint32_t *pointers;     /* by owner's number, if there are more than are followed */
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

static void list_edges(struct sharing_search *s)
{
	const struct dominators *t = &s->graph->tree;

	s->first = xcalloc((size_t)t->count + 2, sizeof(*s->first));
	s->next = xcalloc(t->shared.count + 1, sizeof(*s->next));
	for (size_t i = 0; i < t->shared.count; i++)
		s->first[t->shared.data[i].by + 2]++;
	for (uint32_t i = 2; i < t->count + 2; i++)
		s->first[i] += s->first[i - 1];
	/* first[n + 1] is where the next one of n goes: in the end, where those of n + 1 begin */
	for (size_t i = 0; i < t->shared.count; i++)
		s->next[s->first[t->shared.data[i].by + 1]++] = t->shared.data[i].number;
}

/* Pointers from what each owner holds to shared blocks: in an order of all edges. */
static void count_pointers(struct sharing_search *s)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;
	_cleanup_free_ uint32_t *owner = graph_owner_numbers(g), *number = graph_numbers(g);

	s->pointers = xcalloc(t->count, sizeof(*s->pointers));
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t node = t->node[i];

		for (uint32_t e = g->first[node]; owner[i] && e < g->first[node + 1]; e++) {
			uint32_t to = number[g->edge[e] >> 1];

			s->pointers[owner[i]] += to && owner[to] == DOMINATORS_ROOT &&
						 layer_of(t, i) == layer_of(t, to);
		}
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
	for (uint32_t i = s->first[number]; i < s->first[number + 1]; i++)
		add_bits(s, s->next[i], bits);
}

/* Sums for @count owners from @first on. */
static void run_pass(struct sharing_search *s, struct graph_sharer *first, size_t count,
		     uint32_t top)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;
	uint32_t last = DOMINATORS_ROOT;

	for (size_t i = 0; i < t->shared.count; i++)
		s->mask[t->shared.data[i].number] = 0;
	for (size_t i = 0; i < count; i++)
		pass_bits(s, first[i].owner, UINT64_C(1) << i);
	while (s->stack.count > 0) {
		uint32_t number = s->stack.data[--s->stack.count];

		pass_bits(s, number, s->mask[number]);
	}
	uint64_t wanted = top == DOMINATORS_ROOT ? UINT64_MAX : s->mask[top];

	for (size_t i = 0; i < t->shared.count; i++) {
		uint32_t number = t->shared.data[i].number;

		for (uint64_t bits = number != last ? s->mask[number] & wanted : 0; bits;
		     bits &= bits - 1) {
			struct graph_sharer *o = &first[__builtin_ctzll(bits)];

			o->blocks += g->retained_blocks[number];
			o->bytes += g->retained[number];
		}
		last = number;
	}
}

static int compare_sharers(const void *a, const void *b)
{
	const struct graph_sharer *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* The owners with pointers to shared blocks; if they are too many, those with most. */
static void list_owners(struct sharing_search *s, struct graph_sharing *out)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t i = 1; i < g->tree.count; i++)
		if (s->first[i] < s->first[i + 1] && !graph_is_block(g, g->tree.node[i]))
			*vec_add(&out->list) = (struct graph_sharer){.owner = i};
	if (out->list.count <= GRAPH_SHARERS_MAX)
		return;
	count_pointers(s);
	for (size_t i = 0; i < out->list.count; i++)
		out->list.data[i].bytes = s->pointers[out->list.data[i].owner];
	vec_sort(&out->list, compare_sharers);
	out->others = out->list.count - GRAPH_SHARERS_MAX;
	out->list.count = GRAPH_SHARERS_MAX;
	for (size_t i = 0; i < out->list.count; i++)
		out->list.data[i].bytes = 0;
}

static void search(const struct heap_graph *g, uint32_t top, struct graph_sharing *out)
{
	struct sharing_search s = {.graph = g};
	size_t kept = 0;

	*out = (struct graph_sharing){0};
	if (g->tree.shared.count == 0)
		return;
	list_edges(&s);
	list_owners(&s, out);
	s.mask = xcalloc(g->tree.count, sizeof(*s.mask));
	for (size_t i = 0; i < out->list.count; i += AT_ONCE)
		run_pass(&s, &out->list.data[i], MIN(out->list.count - i, (size_t)AT_ONCE), top);
	for (size_t i = 0; i < out->list.count; i++)
		if (out->list.data[i].blocks > 0)
			out->list.data[kept++] = out->list.data[i];
	out->list.count = kept;
	vec_sort(&out->list, compare_sharers);
	vec_deinit(&s.stack);
	free(s.first);
	free(s.next);
	free(s.pointers);
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
