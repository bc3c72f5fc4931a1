/*
 * Three passes: visits give numbers in preorder; from the last number to the first, each gets its
 * semidominator; from the first to the last, its dominator.
 *
 *	semi[w]   the lowest number from which a path leads to w whose inner numbers are above w
 *	idom[w]   the nearest common ancestor of above[w] and semi[w] in the tree so far
 *
 * Edges of the tree of visits are known as `above`, so only the others are kept reversed: in most
 * heaps these are few.
 */
#include "graph/dominators.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

#define NONE UINT32_MAX

static size_t mark_bytes(const struct dominators *d)
{
	return ((size_t)d->nodes / 64 + 1) * sizeof(uint64_t);
}

void dominators_init(struct dominators *d, uint32_t nodes, const uint32_t *first,
		     const uint32_t *edge)
{
	size_t bytes = ((size_t)nodes + 1) * sizeof(uint32_t);

	*d = (struct dominators){.nodes = nodes, .first = first, .edge = edge, .count = 1};
	d->number = huge_alloc(bytes);
	d->node = huge_alloc(bytes);
	d->above = huge_alloc(bytes);
	d->cursor = huge_alloc(bytes);
	d->is_marked = huge_alloc(mark_bytes(d));
	d->node[DOMINATORS_ROOT] = NONE;
}

static void free_words(const struct dominators *d, uint32_t **words)
{
	huge_free(*words, ((size_t)d->nodes + 1) * sizeof(uint32_t));
	*words = NULL;
}

void dominators_deinit(struct dominators *d)
{
	free_words(d, &d->number);
	free_words(d, &d->node);
	free_words(d, &d->above);
	free_words(d, &d->cursor);
	huge_free(d->is_marked, mark_bytes(d));
	free(d->from);
	vec_deinit(&d->shared);
	d->is_marked = NULL;
	d->from = NULL;
}

void dominators_add_layer(struct dominators *d)
{
	CHECK(d->layers < DOMINATORS_LAYERS);
	d->layer[d->layers++] = d->count;
}

/* -- visits -- */

static uint32_t give_number(struct dominators *d, uint32_t node, uint32_t above)
{
	uint32_t number = d->count++;

	d->number[node] = number;
	d->node[number] = node;
	d->above[number] = above;
	d->cursor[number] = d->first[node];
	return number;
}

#define AHEAD 16u

/* The next edge of @number to a node that was not visited; NONE. */
static uint32_t take_next(struct dominators *d, uint32_t number)
{
	uint32_t end = d->first[d->node[number] + 1];

	while (d->cursor[number] < end) {
		if (d->cursor[number] + AHEAD < end) {
			uint32_t later = d->edge[d->cursor[number] + AHEAD] >> 1;

			__builtin_prefetch(&d->number[later]);
			__builtin_prefetch(&d->first[later]);
		}
		uint32_t edge = d->edge[d->cursor[number]++], to = edge >> 1;

		__builtin_prefetch(&d->first[to]); /* missing, too, if the number is */
		if (!d->number[to])
			return edge;
	}
	return NONE;
}

bool dominators_visit(struct dominators *d, uint32_t node, uint32_t under)
{
	if (d->number[node])
		return false;
	uint32_t start = give_number(d, node, under), at = start;

	while (true) {
		uint32_t next = take_next(d, at);

		if (next != NONE) {
			at = give_number(d, next >> 1, at);
			d->is_marked[at / 64] |= (uint64_t)(next & 1) << at % 64;
		}
		else if (at != start) {
			at = d->above[at];
		} else {
			return true;
		}
	}
}

/* -- reversed edges -- */

static uint32_t layer_end(const struct dominators *d, uint32_t layer)
{
	return layer + 1 < d->layers ? d->layer[layer + 1] : d->count;
}

/*
 * Whether an edge from @from, in the layer that begins at @start, to @to counts, and is not one of
 * the tree.
 */
static bool is_extra(const struct dominators *d, uint32_t from, uint32_t start, uint32_t to)
{
	return to >= start && from != to && d->above[to] != from;
}

/* What is needed of the edges whose turn is next, which may be other nodes'. */
static void prefetch_edge(const struct dominators *d, uint32_t e, uint32_t edges)
{
	if (e + 2 * AHEAD < edges)
		__builtin_prefetch(&d->number[d->edge[e + 2 * AHEAD] >> 1]);
	if (e + AHEAD < edges)
		__builtin_prefetch(&d->above[d->number[d->edge[e + AHEAD] >> 1]]);
}

/*
 * Numbers with such edges are few in most heaps: they are noted in @has_any. In the order of nodes,
 * so that only what is known of the other end of an edge is elsewhere in memory.
 */
static void count_edges(struct dominators *d, uint64_t *has_any)
{
	uint32_t edges = d->first[d->nodes];

	memset(d->cursor, 0, (size_t)d->count * sizeof(*d->cursor));
	for (uint32_t node = 0; node < d->nodes; node++) {
		uint32_t from = d->number[node], layer = d->layers;

		if (!from)
			continue;
		while (d->layer[layer - 1] > from)
			layer--;
		for (uint32_t e = d->first[node]; e < d->first[node + 1]; e++) {
			uint32_t to = d->number[d->edge[e] >> 1];

			prefetch_edge(d, e, edges);
			if (!is_extra(d, from, d->layer[layer - 1], to))
				continue;
			d->cursor[to]++;
			has_any[from / 64] |= UINT64_C(1) << from % 64;
		}
	}
}

/* Of number @from, whose layer begins at @start. */
static void add_edges(struct dominators *d, uint32_t from, uint32_t start)
{
	uint32_t node = d->node[from];

	for (uint32_t e = d->first[node]; e < d->first[node + 1]; e++) {
		uint32_t to = d->number[d->edge[e] >> 1];

		if (is_extra(d, from, start, to))
			d->from[--d->cursor[to]] = from;
	}
}

/* After the sums, each cursor is where its number's edges end; when all are added, begin. */
void dominators_reverse(struct dominators *d)
{
	uint64_t *has_any = xcalloc(mark_bytes(d), 1);

	count_edges(d, has_any);
	for (uint32_t i = 1; i < d->count; i++)
		d->cursor[i] += d->cursor[i - 1];
	uint32_t edges = d->cursor[d->count - 1];

	d->from = xmalloc(((size_t)edges + 1) * sizeof(*d->from));
	for (uint32_t layer = 0; layer < d->layers; layer++)
		for (uint32_t i = d->layer[layer]; i < layer_end(d, layer); i++)
			if (has_any[i / 64] >> i % 64 & 1)
				add_edges(d, i, d->layer[layer]);
	free(has_any);
	free_words(d, &d->number);
	d->edges = edges;
}

/* -- semidominators -- */

struct search {
	struct dominators *d;
	uint32_t *ancestor;     /* by number; paths of it are compressed */
	uint32_t *label;        /* by number: the lowest semidominator on the path compressed */
};

/*
 * The lowest semidominator on the path from @v to the root of its tree, which excludes the root;
 * numbers from @last on are linked. The path is compressed: on the way up its pointers are
 * reversed, so that no stack is needed.
 */
static uint32_t evaluate(struct search *s, uint32_t v, uint32_t last)
{
	uint32_t below = NONE, at = v;

	while (s->ancestor[at] >= last) {
		uint32_t up = s->ancestor[at];

		s->ancestor[at] = below;
		below = at;
		at = up;
	}
	uint32_t root = s->ancestor[at], low = s->label[at];

	while (below != NONE) {
		uint32_t next = s->ancestor[below];

		low = MIN(low, s->label[below]);
		s->label[below] = low;
		s->ancestor[below] = root;
		below = next;
	}
	return low;
}

/* The bit by number says whether it has reversed edges; that of an edge, that it is the first. */
#define IS_FIRST (UINT32_C(1) << 31)

static void mark_edges(struct dominators *d, uint32_t w, uint32_t first, uint32_t end)
{
	uint64_t bit = UINT64_C(1) << w % 64;

	d->is_marked[w / 64] = (d->is_marked[w / 64] & ~bit) | (first < end ? bit : 0);
	if (first < end)
		d->from[first] |= IS_FIRST;
}

/* Replaces where each number's edges begin, from the last one on, by its semidominator. */
static void find_semidominators(struct search *s)
{
	struct dominators *d = s->d;
	uint32_t end = d->edges;

	for (uint32_t i = 0; i < d->count; i++) {
		s->label[i] = i;
		s->ancestor[i] = d->above[i];
	}
	for (uint32_t w = d->count - 1; w > 0; w--) {
		uint32_t semi = d->above[w], first = d->cursor[w];

		for (uint32_t i = first; i < end; i++)
			semi = MIN(semi, evaluate(s, d->from[i], w + 1));
		mark_edges(d, w, first, end);
		end = first;
		d->cursor[w] = semi;
		s->label[w] = semi;
	}
}

/* -- dominators -- */

/* What leads to @w, but for the number from which it was visited: its edges from @at on. */
static uint32_t pass_edges_of(struct dominators *d, uint32_t w, uint32_t at, bool is_wanted)
{
	if (!(d->is_marked[w / 64] >> w % 64 & 1))
		return at;
	do {
		if (is_wanted)
			*vec_add(&d->shared) =
				(struct dominators_shared){w, d->from[at] & ~IS_FIRST};
	} while (++at < d->edges && !(d->from[at] & IS_FIRST));
	return at;
}

/* Nodes that only the root dominates though it does not lead there itself are noted in @shared. */
static void find_dominators(struct dominators *d)
{
	uint32_t at = 0;

	for (uint32_t w = 1; w < d->count; w++) {
		uint32_t visited_from = d->above[w];

		while (d->above[w] > d->cursor[w])
			d->above[w] = d->above[d->above[w]];
		bool is_shared = d->above[w] == DOMINATORS_ROOT && visited_from != DOMINATORS_ROOT;

		if (is_shared)
			*vec_add(&d->shared) = (struct dominators_shared){w, visited_from};
		at = pass_edges_of(d, w, at, is_shared);
	}
}

/* Makes of what leads to shared nodes the child of the root above it, once for each. */
static void find_tops(struct dominators *d)
{
	size_t bytes = ((size_t)d->count + 1) * sizeof(uint32_t), kept = 0;
	uint32_t *top = d->cursor, *last = huge_alloc(bytes);

	for (uint32_t w = 1; w < d->count; w++)
		top[w] = d->above[w] == DOMINATORS_ROOT ? w : top[d->above[w]];
	for (size_t i = 0; i < d->shared.count; i++) {
		struct dominators_shared s = d->shared.data[i];

		s.by = top[s.by];
		if (s.by == s.number || last[s.by] == s.number)
			continue;
		last[s.by] = s.number;
		d->shared.data[kept++] = s;
	}
	d->shared.count = kept;
	huge_free(last, bytes);
}

void dominators_find(struct dominators *d)
{
	size_t bytes = ((size_t)d->count + 1) * sizeof(uint32_t);
	struct search s = {.d = d, .label = huge_alloc(bytes), .ancestor = huge_alloc(bytes)};

	find_semidominators(&s);
	huge_free(s.ancestor, bytes);
	huge_free(s.label, bytes);
	find_dominators(d);
	free(d->from);
	d->from = NULL;
	if (d->shared.count > 0)
		find_tops(d);
	free_words(d, &d->cursor);
}
