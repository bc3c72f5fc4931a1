/* Solves a graph: layers by rank of the owners, the lost, then the sums along the tree. */
#include "graph/heap_graph.h"

#include <stdlib.h>

#include "graph/graph_sharing.h"
#include "leak/leakcheck.h"

const char *const graph_owner_kind_name[OWNER_KINDS] = {
	[OWNER_VARIABLE] = "variable", [OWNER_SECTION] = "section", [OWNER_TLS] = "thread",
	[OWNER_STACK] = "stack", [OWNER_FRAME] = "frame", [OWNER_REGISTERS] = "registers",
	[OWNER_MAPPING] = "mapping", [OWNER_GLOBAL] = "global",
	[OWNER_INTERPRETER] = "interpreter", [OWNER_LOST] = "leaked",
};

uint32_t graph_owner_rank(enum graph_owner_kind kind)
{
	static const uint8_t rank[OWNER_KINDS] = {
		[OWNER_INTERPRETER] = 1, [OWNER_STACK] = 2, [OWNER_FRAME] = 2,
		[OWNER_REGISTERS] = 3, [OWNER_MAPPING] = 4,
		[OWNER_LOST] = GRAPH_RANKS - 1};

	return rank[kind];
}

void heap_graph_init(struct heap_graph *g)
{
	*g = (struct heap_graph){0};
}

static size_t number_room(const struct heap_graph *g)
{
	return (size_t)g->tree.nodes + 1;
}

static void free_edges(struct heap_graph *g)
{
	huge_free(g->first, (size_t)g->first_room * sizeof(*g->first));
	huge_free(g->edge, g->edge_room * sizeof(*g->edge));
	huge_free(g->place, g->edge_room * sizeof(*g->place));
	g->first = g->edge = NULL;
	g->place = NULL;
}

void heap_graph_deinit(struct heap_graph *g)
{
	vec_release(&g->owners, o, { free(o->name); free(o->object); });
	vec_release(&g->types, t, free(*t));
	graph_types_free(g->typed);
	graph_sites_free(g->sites);
	huge_free(g->block, graph_block_bytes(g));
	free_edges(g);
	block_index_deinit(&g->index);
	free(g->is_lost);
	free(g->is_certain);
	huge_free(g->retained, number_room(g) * sizeof(*g->retained));
	huge_free(g->retained_blocks, number_room(g) * sizeof(*g->retained_blocks));
	if (g->untouched)
		huge_free(g->untouched, number_room(g) * sizeof(*g->untouched));
	dominators_deinit(&g->tree);
	graph_sharing_free(g->sharing);
	heap_graph_init(g);
}

/* -- layers -- */

/* The owners of @rank; frames directly after their stacks, since visits are nested. */
static void visit_owners(struct heap_graph *g, uint32_t rank)
{
	dominators_add_layer(&g->tree);
	for (uint32_t i = 0; i < g->owners.count; i++) {
		const struct graph_owner *o = &g->owners.data[i];

		if (o->under || graph_owner_rank(o->kind) != rank)
			continue;
		uint32_t under = g->tree.count;

		dominators_visit(&g->tree, g->blocks + i, DOMINATORS_ROOT);
		for (uint32_t k = i + 1; k < g->owners.count && o->kind == OWNER_STACK; k++)
			if (g->owners.data[k].under == i + 1)
				dominators_visit(&g->tree, g->blocks + k, under);
	}
}

/* -- lost blocks -- */

/*
 * Leads to all blocks: none of the unvisited blocks before it does. A later one may, so that they
 * are tried again, last one first, when all are known: as in leak/leakcheck.h.
 */
struct lost_search {
	struct heap_graph *graph;
	VEC(uint32_t) leaders, stack;
};

/* Whether it was 0. */
static bool set_bit(uint64_t *bits, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64, *word = &bits[i / 64];
	bool is_new = !(*word & bit);

	*word |= bit;
	return is_new;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static uint64_t *new_bits(const struct heap_graph *g)
{
	return xcalloc((size_t)g->blocks / 64 + 1, sizeof(uint64_t));
}

static void claim(struct lost_search *s, uint32_t leader)
{
	const struct heap_graph *g = s->graph;

	*vec_add(&s->leaders) = leader;
	*vec_add(&s->stack) = leader;
	while (s->stack.count > 0) {
		uint32_t block = s->stack.data[--s->stack.count];

		for (uint32_t e = g->first[block]; e < g->first[block + 1]; e++) {
			uint32_t to = g->edge[e] >> 1;

			if (!g->tree.number[to] && set_bit(g->is_lost, to))
				*vec_add(&s->stack) = to;
		}
	}
}

static void visit_lost(struct heap_graph *g)
{
	struct lost_search s = {.graph = g};
	uint32_t under = g->tree.count;

	g->is_lost = new_bits(g);
	for (uint32_t i = 0; i < g->blocks; i++)
		if (!g->tree.number[i] && set_bit(g->is_lost, i))
			claim(&s, i);
	dominators_add_layer(&g->tree);
	dominators_visit(&g->tree, graph_nodes(g) - 1, DOMINATORS_ROOT);
	while (s.leaders.count > 0) {
		uint32_t block = s.leaders.data[--s.leaders.count];

		g->block[block].is_leader = dominators_visit(&g->tree, block, under);
	}
	vec_deinit(&s.leaders);
	vec_deinit(&s.stack);
}

/* -- sums -- */

#define AHEAD 16u

static void add_up(struct heap_graph *g)
{
	const struct dominators *t = &g->tree;

	g->retained = huge_alloc(number_room(g) * sizeof(*g->retained));
	g->retained_blocks = huge_alloc(number_room(g) * sizeof(*g->retained_blocks));
	for (uint32_t i = t->count - 1; i > 0; i--) {
		if (i > AHEAD && graph_is_block(g, t->node[i - AHEAD]))
			__builtin_prefetch(&g->block[t->node[i - AHEAD]]);
		g->retained[i] += graph_size(g, t->node[i]);
		g->retained_blocks[i] += graph_is_block(g, t->node[i]);
		g->retained[t->above[i]] += g->retained[i];
		g->retained_blocks[t->above[i]] += g->retained_blocks[i];
	}
}

static void add_lost_owner(struct heap_graph *g)
{
	uint32_t nodes = graph_nodes(g);

	*vec_add(&g->owners) = (struct graph_owner){.kind = OWNER_LOST};
	g->first[nodes + 1] = g->first[nodes];
}

/* -- certain blocks -- */

/* Visits that only followed pointers to starts are certain. Ascending: the one above is known. */
static void mark_visited(struct heap_graph *g)
{
	const struct dominators *t = &g->tree;
	uint32_t end = t->layer[t->layers - 1];

	for (uint32_t i = 1; i < end; i++) {
		uint32_t above = t->node[t->above[i]];
		bool is_certain = t->above[i] == DOMINATORS_ROOT || !graph_is_block(g, above) ||
				  has_bit(g->is_certain, above);

		if (is_certain && !has_bit(t->is_marked, i) && graph_is_block(g, t->node[i]))
			set_bit(g->is_certain, t->node[i]);
	}
}

/* What else certain nodes lead to, by edges that were not those of visits. */
static void mark_certain(struct heap_graph *g)
{
	VEC(uint32_t) stack = {0};

	g->is_certain = new_bits(g);
	mark_visited(g);
	for (uint32_t i = 0; i < graph_nodes(g); i++) {
		if (graph_is_block(g, i) && !has_bit(g->is_certain, i))
			continue;
		*vec_add(&stack) = i;
		while (stack.count > 0) {
			uint32_t node = stack.data[--stack.count];

			for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
				if (!(g->edge[e] & GRAPH_IS_INTERIOR) &&
				    set_bit(g->is_certain, g->edge[e] >> 1))
					*vec_add(&stack) = g->edge[e] >> 1;
		}
	}
	vec_deinit(&stack);
}

void heap_graph_solve(struct heap_graph *g)
{
	block_index_deinit(&g->index);
	g->index = (struct block_index){0};
	add_lost_owner(g);
	dominators_init(&g->tree, graph_nodes(g), g->first, g->edge);
	for (uint32_t rank = 0; rank + 1 < GRAPH_RANKS; rank++)
		visit_owners(g, rank);
	visit_lost(g);
	mark_certain(g);
	dominators_reverse(&g->tree);
	if (!g->keeps_edges)
		free_edges(g);
	dominators_find(&g->tree);
	add_up(g);
	g->sharing = graph_sharing_new();
}

/* -- questions -- */

void heap_graph_states(const struct heap_graph *g, struct graph_states *out)
{
	*out = (struct graph_states){0};
	for (uint32_t i = 0; i < g->blocks; i++) {
		bool is_lost = has_bit(g->is_lost, i);
		enum leakcheck_state state =
			is_lost ? g->block[i].is_leader ? LEAKCHECK_DEFINITE : LEAKCHECK_INDIRECT :
			has_bit(g->is_certain, i) ? LEAKCHECK_REACHABLE : LEAKCHECK_POSSIBLE;

		out->state[state].blocks++;
		out->state[state].bytes += g->block[i].size;
	}
}

/* Children have higher numbers than what is above them. */
void heap_graph_find_untouched(struct heap_graph *g, const struct touched_pages *p)
{
	const struct dominators *t = &g->tree;
	size_t at = 0;

	g->untouched = huge_alloc(number_room(g) * sizeof(*g->untouched));
	for (uint32_t i = t->count - 1; i > 0; i--) {
		struct cold_bytes *own = &g->untouched[i], *above = &g->untouched[t->above[i]];

		if (graph_is_block(g, t->node[i])) {
			const struct graph_block *b = &g->block[t->node[i]];
			struct cold_bytes c = cold_bytes_of(p, &at, b->addr, b->size);

			own->cold += c.cold;
			own->shared += c.shared;
		}
		above->cold += own->cold;
		above->shared += own->shared;
	}
}

uint32_t heap_graph_find(const struct heap_graph *g, taddr_t addr)
{
	uint32_t low = 0, high = g->blocks;
	bool is_start;

	if (g->index.top)
		return block_index_find(&g->index, addr, &is_start);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->block[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && addr - g->block[low - 1].addr < MAX(g->block[low - 1].size, 1u) ?
		       low - 1 : UINT32_MAX;
}
