/*
 * The largest node whose parent has a row gets the next row, until there is no room: so each level
 * of what retains much is there before the details of what retains little.
 */
#include "graph/graph_tree.h"

#include <stdlib.h>

#include "base/alloc.h"

/* A node that may get a row. */
struct tree_candidate {
	uint32_t number;
	uint32_t at;            /* its place among its siblings, an index of `child` */
	uint32_t parent;        /* of its row */
	uint32_t level;
};

struct tree_search {
	const struct heap_graph *graph;
	const struct graph_tree_limits *limits;
	struct graph_tree *out;
	/* by number: its children are child[first[number]] to child[first[number + 1] - 1] */
	uint32_t *first, *child;
	VEC(struct tree_candidate) heap; /* the largest one on top */
	VEC(uint32_t) number;       /* by row, of an owner or a block; else DOMINATORS_ROOT */
	size_t rows;                /* without those of kind REST */
};

/* -- children -- */

static bool is_shown(const struct heap_graph *g, uint32_t number)
{
	return g->retained_blocks[number] > 0;
}

static void find_children(struct tree_search *s)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;

	s->first = xcalloc((size_t)t->count + 2, sizeof(*s->first));
	s->child = xcalloc((size_t)t->count + 1, sizeof(*s->child));
	for (uint32_t i = 1; i < t->count; i++)
		s->first[t->above[i] + 2] += is_shown(g, i);
	for (uint32_t i = 2; i < t->count + 2; i++)
		s->first[i] += s->first[i - 1];
	/* first[n + 1] is where the next child of n goes: in the end, where those of n + 1 begin */
	for (uint32_t i = 1; i < t->count; i++)
		if (is_shown(g, i))
			s->child[s->first[t->above[i] + 1]++] = i;
}

/* Whether @a comes before @b: it retains more. */
static bool is_first(const struct heap_graph *g, uint32_t a, uint32_t b)
{
	return g->retained[a] != g->retained[b] ? g->retained[a] > g->retained[b] : a < b;
}

static int compare_children(const void *a, const void *b, void *graph)
{
	const uint32_t *x = a, *y = b;

	return is_first(graph, *x, *y) ? -1 : is_first(graph, *y, *x);
}

/* Of the root, owners come first; returns their number. */
static uint32_t sort_top(struct tree_search *s)
{
	const struct heap_graph *g = s->graph;
	uint32_t end = s->first[DOMINATORS_ROOT + 1], owners = 0;

	for (uint32_t i = 0; i < end; i++) {
		uint32_t number = s->child[i];

		if (graph_is_block(g, g->tree.node[number]))
			continue;
		s->child[i] = s->child[owners];
		s->child[owners++] = number;
	}
	qsort_r(s->child, owners, sizeof(*s->child), compare_children, (void *)(uintptr_t)g);
	qsort_r(s->child + owners, end - owners, sizeof(*s->child), compare_children,
		(void *)(uintptr_t)g);
	return owners;
}

/* -- the next candidate -- */

static void swap(struct tree_candidate *a, struct tree_candidate *b)
{
	struct tree_candidate c = *a;

	*a = *b;
	*b = c;
}

static void push(struct tree_search *s, struct tree_candidate c)
{
	struct tree_candidate *heap;
	size_t i = s->heap.count;

	*vec_add(&s->heap) = c;
	heap = s->heap.data;
	for (; i > 0 && is_first(s->graph, heap[i].number, heap[(i - 1) / 2].number);
	     i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static struct tree_candidate pop(struct tree_search *s)
{
	struct tree_candidate *heap = s->heap.data, top = heap[0];
	size_t count = --s->heap.count, i = 0;

	heap[0] = heap[count];
	while (true) {
		size_t best = i;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < count; k++)
			if (is_first(s->graph, heap[k].number, heap[best].number))
				best = k;
		if (best == i)
			return top;
		swap(&heap[i], &heap[best]);
		i = best;
	}
}

/* -- rows -- */

static uint32_t add_row(struct tree_search *s, struct graph_tree_row row, uint32_t number)
{
	*vec_add(&s->out->list) = row;
	*vec_add(&s->number) = number;
	s->rows++;
	return (uint32_t)s->out->list.count;
}

/* The children from @begin to @end may get rows below @row of @level, the first one first. */
static void open_children(struct tree_search *s, uint32_t begin, uint32_t end, uint32_t row,
			  uint32_t level)
{
	if (begin < end && level < s->limits->depth && s->limits->most > 0)
		push(s, (struct tree_candidate){s->child[begin], begin, row, level + 1});
}

/* Its siblings are child[begin] to child[end - 1]. */
static void add_candidate(struct tree_search *s, struct tree_candidate c, uint32_t begin,
			  uint32_t end)
{
	const struct heap_graph *g = s->graph;
	uint32_t node = g->tree.node[c.number];
	uint32_t row = add_row(s, (struct graph_tree_row){
		.kind = graph_is_block(g, node) ? GRAPH_ROW_BLOCK : GRAPH_ROW_OWNER,
		.parent = c.parent, .node = node, .bytes = g->retained[c.number],
		.blocks = g->retained_blocks[c.number]}, c.number);

	if (c.at + 1 < end && c.at + 1 - begin < s->limits->most)
		push(s, (struct tree_candidate){s->child[c.at + 1], c.at + 1, c.parent, c.level});
	uint32_t first = s->first[c.number], last = s->first[c.number + 1];

	qsort_r(s->child + first, last - first, sizeof(*s->child), compare_children,
		(void *)(uintptr_t)g);
	open_children(s, first, last, row, c.level);
}

static struct graph_tree_row sum_of(const struct tree_search *s, uint32_t begin, uint32_t end)
{
	struct graph_tree_row row = {.count = end - begin};

	for (uint32_t i = begin; i < end; i++) {
		row.bytes += s->graph->retained[s->child[i]];
		row.blocks += s->graph->retained_blocks[s->child[i]];
	}
	return row;
}

/* What is below a row, or with 0 on top, without what has rows. */
static void subtract(struct graph_tree_row *rest, const struct graph_tree_row *row)
{
	rest->bytes -= row->bytes;
	rest->blocks -= row->blocks;
	rest->count--;
}

/* Adds rows for what has none. @top: all owners. */
static void add_rests(struct tree_search *s, struct graph_tree_row top)
{
	size_t rows = s->out->list.count;
	struct graph_tree_row *rest = xcalloc(rows + 1, sizeof(*rest));

	rest[0] = top;
	for (size_t i = 0; i < rows; i++) {
		const struct graph_tree_row *row = &s->out->list.data[i];
		uint32_t number = s->number.data[i];

		if (row->kind == GRAPH_ROW_SHARED)
			rest[i + 1] = *row;
		else
			rest[i + 1] = sum_of(s, s->first[number], s->first[number + 1]);
		if (row->kind != GRAPH_ROW_SHARED)
			subtract(&rest[row->parent], row);
	}
	for (uint32_t i = 0; i <= rows; i++)
		if (rest[i].count > 0) {
			rest[i].kind = GRAPH_ROW_REST;
			rest[i].parent = i;
			*vec_add(&s->out->list) = rest[i];
		}
	free(rest);
}

static void add_top(struct tree_search *s, uint32_t owners)
{
	uint32_t end = s->first[DOMINATORS_ROOT + 1];

	for (uint32_t i = 0; i < MIN(owners, s->limits->owners); i++)
		/* its own siblings are added here */
		add_candidate(s, (struct tree_candidate){s->child[i], i, 0, 0}, i, i + 1);
	if (owners == end)
		return;
	struct graph_tree_row shared = sum_of(s, owners, end);

	shared.kind = GRAPH_ROW_SHARED;
	uint32_t row = add_row(s, shared, DOMINATORS_ROOT);

	open_children(s, owners, end, row, 0);
}

void graph_tree_find(const struct heap_graph *g, const struct graph_tree_limits *limits,
		     struct graph_tree *out)
{
	struct tree_search s = {.graph = g, .limits = limits, .out = out};

	*out = (struct graph_tree){0};
	find_children(&s);
	uint32_t owners = sort_top(&s), end = s.first[DOMINATORS_ROOT + 1];

	add_top(&s, owners);
	while (s.heap.count > 0 && s.rows < limits->rows) {
		struct tree_candidate c = pop(&s);
		uint32_t above = g->tree.above[c.number];

		if (above == DOMINATORS_ROOT)
			add_candidate(&s, c, owners, end);
		else
			add_candidate(&s, c, s.first[above], s.first[above + 1]);
	}
	add_rests(&s, sum_of(&s, 0, owners));
	vec_deinit(&s.heap);
	vec_deinit(&s.number);
	free(s.first);
	free(s.child);
}
