/* Rows of the tree, found level by level, and breadth-first searches for ways. */
#include "graph/graph_view.h"

#include <stdlib.h>

/* -- the largest children -- */

struct child_list {
	VEC(uint32_t) best;      /* numbers; a heap with the smallest on top, then sorted */
	size_t most;
	uint64_t count, bytes, blocks; /* of all */
};

/* Whether @a comes after @b. */
static bool is_less(const struct heap_graph *g, uint32_t a, uint32_t b)
{
	if (g->retained[a] != g->retained[b])
		return g->retained[a] < g->retained[b];
	return a > b;
}

static void sift_down(const struct heap_graph *g, uint32_t *heap, size_t count, size_t at)
{
	while (true) {
		size_t low = at;

		for (size_t k = 2 * at + 1; k <= 2 * at + 2 && k < count; k++)
			if (is_less(g, heap[k], heap[low]))
				low = k;
		if (low == at)
			return;
		uint32_t other = heap[at];

		heap[at] = heap[low];
		heap[low] = other;
		at = low;
	}
}

static void take_child(const struct heap_graph *g, struct child_list *l, uint32_t number)
{
	l->count++;
	l->bytes += g->retained[number];
	l->blocks += g->retained_blocks[number];
	if (l->best.count < l->most) {
		*vec_add(&l->best) = number;
		for (size_t i = l->best.count / 2; l->best.count == l->most && i-- > 0;)
			sift_down(g, l->best.data, l->best.count, i);
	} else if (l->most > 0 && is_less(g, l->best.data[0], number)) {
		l->best.data[0] = number;
		sift_down(g, l->best.data, l->best.count, 0);
	}
}

/* Most first: the smallest goes to the end, again and again. */
static void sort_children(const struct heap_graph *g, struct child_list *l)
{
	size_t count = l->best.count;

	for (size_t i = count / 2; i-- > 0;)
		sift_down(g, l->best.data, count, i);
	while (count > 1) {
		uint32_t smallest = l->best.data[0];

		l->best.data[0] = l->best.data[--count];
		l->best.data[count] = smallest;
		sift_down(g, l->best.data, count, 0);
	}
}

/* What children of the root are wanted. */
enum child_kind { CHILD_ANY, CHILD_OWNER, CHILD_BLOCK };

/* Children have higher numbers, and all that is retained is theirs: then the search ends. */
static void find_children(const struct heap_graph *g, uint32_t number, enum child_kind kind,
			  struct child_list *l)
{
	const struct dominators *t = &g->tree;
	uint64_t left = g->retained_blocks[number];

	if (number != DOMINATORS_ROOT)
		left -= graph_is_block(g, t->node[number]);
	for (uint32_t i = number + 1; i < t->count && left > 0; i++) {
		if (t->above[i] != number || g->retained_blocks[i] == 0)
			continue;
		left -= g->retained_blocks[i];
		if (kind == CHILD_ANY ||
		    (kind == CHILD_BLOCK) == graph_is_block(g, t->node[i]))
			take_child(g, l, i);
	}
	sort_children(g, l);
}

/* -- rows -- */

struct row_search {
	const struct heap_graph *graph;
	const struct graph_limits *limits;
	struct graph_rows *rows;
};

/* A level whose rows are being added; levels are opened one below the other. */
struct open_level {
	struct child_list children;
	size_t at;
};

static void open_children(const struct row_search *s, uint32_t number, enum child_kind kind,
			  struct open_level *out)
{
	bool is_top = number == DOMINATORS_ROOT && kind == CHILD_OWNER;

	*out = (struct open_level){
		.children.most = is_top ? s->limits->most : s->limits->most_below};
	find_children(s->graph, number, kind, &out->children);
}

/* The row for those that are not shown. */
static void close_level(const struct row_search *s, struct open_level *l, uint32_t level)
{
	const struct child_list *c = &l->children;
	struct graph_row rest = {.kind = GRAPH_ROW_REST, .level = level, .bytes = c->bytes,
				 .blocks = c->blocks, .count = c->count - c->best.count};

	for (size_t i = 0; i < c->best.count; i++) {
		rest.bytes -= s->graph->retained[c->best.data[i]];
		rest.blocks -= s->graph->retained_blocks[c->best.data[i]];
	}
	if (rest.count > 0)
		*vec_add(&s->rows->list) = rest;
	vec_deinit(&l->children.best);
}

/* The rows of @first, the children of one row, to the depth that is wanted. */
static void add_levels(const struct row_search *s, struct open_level first, uint32_t level)
{
	const struct heap_graph *g = s->graph;
	VEC(struct open_level) open = {0};

	*vec_add(&open) = first;
	while (open.count > 0) {
		struct open_level *l = &open.data[open.count - 1], below;

		if (l->at == l->children.best.count) {
			close_level(s, l, level + (uint32_t)open.count - 1);
			open.count--;
			continue;
		}
		uint32_t number = l->children.best.data[l->at++], node = g->tree.node[number];
		uint32_t here = level + (uint32_t)open.count - 1;

		*vec_add(&s->rows->list) = (struct graph_row){
			.kind = graph_is_block(g, node) ? GRAPH_ROW_BLOCK : GRAPH_ROW_OWNER,
			.level = here, .node = node, .number = number,
			.bytes = g->retained[number], .blocks = g->retained_blocks[number]};
		if (here >= s->limits->depth)
			continue;
		open_children(s, number, CHILD_ANY, &below);
		*vec_add(&open) = below;
	}
	vec_deinit(&open);
}

static void add_shared(const struct row_search *s)
{
	struct open_level shared;

	open_children(s, DOMINATORS_ROOT, CHILD_BLOCK, &shared);
	if (shared.children.count > 0)
		*vec_add(&s->rows->list) = (struct graph_row){
			.kind = GRAPH_ROW_SHARED, .bytes = shared.children.bytes,
			.blocks = shared.children.blocks, .count = shared.children.count};
	if (shared.children.count > 0 && s->limits->depth > 0)
		add_levels(s, shared, 1);
	else
		vec_deinit(&shared.children.best);
}

void graph_rows_find(const struct heap_graph *g, const struct graph_limits *limits,
		     struct graph_rows *out)
{
	const struct row_search s = {g, limits, out};
	struct open_level owners;

	*out = (struct graph_rows){0};
	open_children(&s, DOMINATORS_ROOT, CHILD_OWNER, &owners);
	add_levels(&s, owners, 0);
	add_shared(&s);
}

uint32_t graph_number_of(const struct heap_graph *g, uint32_t node)
{
	for (uint32_t i = 1; i < g->tree.count; i++)
		if (g->tree.node[i] == node)
			return i;
	return DOMINATORS_ROOT;
}

/* -- what holds a shared block -- */

bool graph_row_is_shared(const struct heap_graph *g, const struct graph_row *r)
{
	return r->kind == GRAPH_ROW_BLOCK && g->tree.above[r->number] == DOMINATORS_ROOT;
}

struct owner_search {
	const struct heap_graph *graph;
	uint64_t *is_seen;      /* a bit by number */
	VEC(uint32_t) queue;    /* numbers */
};

static void queue_number(struct owner_search *s, uint32_t number)
{
	uint64_t bit = UINT64_C(1) << number % 64;

	if (!(s->is_seen[number / 64] & bit))
		*vec_add(&s->queue) = number;
	s->is_seen[number / 64] |= bit;
}

static void queue_holders(struct owner_search *s, uint32_t number)
{
	const struct dominators *t = &s->graph->tree;

	for (size_t i = vec_search(&t->shared, e, e->number < number);
	     i < t->shared.count && t->shared.data[i].number == number; i++)
		queue_number(s, t->shared.data[i].by);
}

void graph_holders_find(const struct heap_graph *g, const struct graph_row *r, size_t most,
			struct graph_holders *out)
{
	struct owner_search s = {
		.graph = g, .is_seen = xcalloc((size_t)g->tree.count / 64 + 1, sizeof(uint64_t))};

	*out = (struct graph_holders){0};
	queue_number(&s, r->number);
	for (size_t at = 0; at < s.queue.count; at++) {
		uint32_t number = s.queue.data[at], node = g->tree.node[number];

		queue_holders(&s, number);
		if (graph_is_block(g, node))
			continue;
		if (out->count++ < most)
			*vec_add(&out->owners) = node - g->blocks;
	}
	vec_deinit(&s.queue);
	free(s.is_seen);
}

/* -- ways -- */

#define NOT_SEEN UINT32_MAX

#define ALL_WANTED UINT32_MAX

struct graph_ways {
	const struct heap_graph *graph;
	uint32_t *by;           /* by node: index of the edge that was found first; NOT_SEEN */
	VEC(uint32_t) queue;
	size_t at;
	uint32_t wanted;         /* the search ends there; ALL_WANTED */
};

/* Whether the block was found. */
static bool spread(struct graph_ways *s)
{
	const struct heap_graph *g = s->graph;

	for (; s->at < s->queue.count; s->at++) {
		uint32_t node = s->queue.data[s->at];

		if (node == s->wanted)
			return true;
		for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
			uint32_t to = g->edge[e] >> 1;

			if (s->by[to] != NOT_SEEN)
				continue;
			s->by[to] = e;
			*vec_add(&s->queue) = to;
		}
	}
	return false;
}

#define IS_START (UINT32_MAX - 1)

static void start_at(struct graph_ways *s, uint32_t node)
{
	if (s->by[node] == NOT_SEEN)
		*vec_add(&s->queue) = node;
	s->by[node] = IS_START;
}

static bool find_way(struct graph_ways *s)
{
	const struct heap_graph *g = s->graph;

	for (uint32_t rank = 0; rank < GRAPH_RANKS; rank++) {
		for (uint32_t i = 0; i < g->owners.count; i++)
			if (graph_owner_rank(g->owners.data[i].kind) == rank)
				start_at(s, g->blocks + i);
		for (uint32_t i = 0; i < g->blocks && rank + 1 == GRAPH_RANKS; i++)
			if (g->block[i].is_leader)
				start_at(s, i);
		if (spread(s))
			return true;
	}
	return false;
}

/* The node that has edge @e. */
static uint32_t node_of(const struct heap_graph *g, uint32_t e)
{
	uint32_t low = 0, high = graph_nodes(g);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->first[middle + 1] <= e)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void search(struct graph_ways *s)
{
	size_t nodes = (size_t)graph_nodes(s->graph) + 1;

	s->by = xmalloc(nodes * sizeof(*s->by));
	memset(s->by, 0xff, nodes * sizeof(*s->by));
	find_way(s);
	vec_deinit(&s->queue);
}

void graph_ways_find(const struct graph_ways *w, uint32_t block, size_t most,
		     struct graph_way *out)
{
	const struct heap_graph *g = w->graph;
	uint32_t node = block;

	*out = (struct graph_way){0};
	if (w->by[block] == NOT_SEEN)
		return;
	*vec_add(&out->steps) = (struct graph_step){.node = block};
	while (w->by[node] != IS_START && out->steps.count <= most) {
		const struct graph_step step = {node_of(g, w->by[node]), g->place[w->by[node]]};

		*vec_add(&out->steps) = step;
		node = step.node;
	}
	if (out->steps.count > most)
		out->steps.count = 0;
	for (size_t i = 0; i < out->steps.count / 2; i++) {
		struct graph_step *a = &out->steps.data[i];
		struct graph_step *b = &out->steps.data[out->steps.count - 1 - i], t = *a;

		*a = *b;
		*b = t;
	}
}

void graph_way_find(const struct heap_graph *g, uint32_t block, struct graph_way *out)
{
	struct graph_ways w = {.graph = g, .wanted = block};

	search(&w);
	graph_ways_find(&w, block, SIZE_MAX, out);
	free(w.by);
}

struct graph_ways *graph_ways_new(const struct heap_graph *g)
{
	struct graph_ways *w = xcalloc(1, sizeof(*w));

	*w = (struct graph_ways){.graph = g, .wanted = ALL_WANTED};
	search(w);
	return w;
}

void graph_ways_free(struct graph_ways *w)
{
	free(w->by);
	free(w);
}
