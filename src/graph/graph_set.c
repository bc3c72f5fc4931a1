/* One pass over the tree, and one search of the graph around the set. */
#include "graph/graph_set.h"

#include <stdlib.h>

#include "graph/graph_sharing.h"

static bool has_node(const struct heap_graph *g, const uint64_t *is_in, uint32_t node)
{
	return graph_is_block(g, node) && is_in[node / 64] >> node % 64 & 1;
}

struct graph_amount graph_set_each(const struct heap_graph *g, const uint64_t *is_in)
{
	const struct dominators *t = &g->tree;
	bool *is_below = xcalloc(t->count, sizeof(*is_below)); /* one of the set, or is one */
	struct graph_amount each = {0};

	for (uint32_t i = 1; i < t->count; i++) {
		is_below[i] = is_below[t->above[i]];
		if (is_below[i] || !has_node(g, is_in, t->node[i]))
			continue;
		is_below[i] = true;
		each.bytes += g->retained[i];
		each.blocks += g->retained_blocks[i];
	}
	free(is_below);
	return each;
}

/* -- without the set -- */

struct set_search {
	const struct heap_graph *graph;
	const uint64_t *is_in;
	uint32_t *number;       /* by node */
	bool *is_reached;       /* by number */
	VEC(uint32_t) stack;    /* numbers, of one layer */
	uint32_t begin, end;    /* of that layer */
	struct graph_amount reached;
};

static void reach(struct set_search *s, uint32_t node)
{
	const struct heap_graph *g = s->graph;
	uint32_t number = s->number[node];

	if (number < s->begin || number >= s->end || s->is_reached[number] ||
	    has_node(g, s->is_in, node))
		return;
	s->is_reached[number] = true;
	s->reached.bytes += graph_size(g, node);
	s->reached.blocks += graph_is_block(g, node);
	*vec_add(&s->stack) = number;
}

/* From what the visits of the layer began at: the owners, or blocks that nothing leads to. */
static void search_layer(struct set_search *s)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t i = s->begin; i < s->end; i++)
		if (!graph_is_block(g, g->tree.node[i]) || g->block[g->tree.node[i]].is_leader)
			reach(s, g->tree.node[i]);
	while (s->stack.count > 0) {
		uint32_t node = g->tree.node[s->stack.data[--s->stack.count]];

		for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
			reach(s, g->edge[e] >> 1);
	}
}

struct graph_amount graph_set_all(const struct heap_graph *g, const uint64_t *is_in)
{
	const struct dominators *t = &g->tree;
	struct set_search s = {.graph = g, .is_in = is_in, .number = graph_numbers(g)};
	struct graph_amount all;

	s.is_reached = xcalloc(t->count, sizeof(*s.is_reached));
	for (uint32_t layer = 0; layer < t->layers; layer++) {
		s.begin = MAX(t->layer[layer], 1u);
		s.end = layer + 1 < t->layers ? t->layer[layer + 1] : t->count;
		search_layer(&s);
	}
	all = (struct graph_amount){g->bytes - s.reached.bytes, g->blocks - s.reached.blocks};
	vec_deinit(&s.stack);
	free(s.is_reached);
	free(s.number);
	return all;
}
