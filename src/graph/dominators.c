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

void dominators_init(struct dominators *d, uint32_t nodes, const uint32_t *first,
		     const uint32_t *edge)
{
	size_t bytes = ((size_t)nodes + 1) * sizeof(uint32_t);

	*d = (struct dominators){.nodes = nodes, .first = first, .edge = edge, .count = 1};
	d->number = huge_alloc(bytes);
	d->node = huge_alloc(bytes);
	d->above = huge_alloc(bytes);
	d->cursor = huge_alloc(bytes);
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

/* The next node that @number leads to and that was not visited; NONE. */
static uint32_t take_next(struct dominators *d, uint32_t number)
{
	uint32_t end = d->first[d->node[number] + 1];

	while (d->cursor[number] < end) {
		uint32_t to = d->edge[d->cursor[number]++] >> 1;

		if (!d->number[to])
			return to;
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

		if (next != NONE)
			at = give_number(d, next, at);
		else if (at != start)
			at = d->above[at];
		else
			return true;
	}
}

/* -- reversed edges -- */

struct search {
	struct dominators *d;
	uint32_t *first, *from; /* by number: from where edges lead there */
	uint32_t *ancestor;     /* by number; paths of it are compressed */
	uint32_t *label;        /* by number: the lowest semidominator on the path compressed */
	uint32_t *semi;
};

/* Whether the edge from number @from to @to counts, and is not one of the tree. */
static bool is_extra(const struct dominators *d, uint32_t from, uint32_t to, uint32_t layer_start)
{
	return to >= layer_start && from != to && d->above[to] != from;
}

/* Calls back for all such edges: counts them if @next is NULL, else stores them. */
static void pass_edges(struct search *s, uint32_t *next)
{
	struct dominators *d = s->d;

	for (uint32_t layer = 0; layer < d->layers; layer++) {
		uint32_t start = d->layer[layer];
		uint32_t end = layer + 1 < d->layers ? d->layer[layer + 1] : d->count;

		for (uint32_t from = start; from < end; from++) {
			uint32_t node = d->node[from];

			for (uint32_t e = d->first[node]; e < d->first[node + 1]; e++) {
				uint32_t to = d->number[d->edge[e] >> 1];

				if (!is_extra(d, from, to, start))
					continue;
				if (next)
					s->from[next[to]++] = from;
				else
					s->first[to + 1]++;
			}
		}
	}
}

static void reverse_edges(struct search *s)
{
	struct dominators *d = s->d;
	size_t bytes = ((size_t)d->count + 1) * sizeof(uint32_t);

	s->first = huge_alloc(bytes);
	pass_edges(s, NULL);
	for (uint32_t i = 0; i < d->count; i++)
		s->first[i + 1] += s->first[i];
	s->from = huge_alloc(((size_t)s->first[d->count] + 1) * sizeof(uint32_t));
	uint32_t *next = d->cursor; /* not needed any more */

	memcpy(next, s->first, (size_t)d->count * sizeof(*next));
	pass_edges(s, next);
}

/* -- semidominators -- */

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

static void find_semidominators(struct search *s)
{
	struct dominators *d = s->d;

	for (uint32_t i = 0; i < d->count; i++) {
		s->label[i] = i;
		s->ancestor[i] = d->above[i];
	}
	for (uint32_t w = d->count - 1; w > 0; w--) {
		uint32_t semi = d->above[w];

		for (uint32_t i = s->first[w]; i < s->first[w + 1]; i++)
			semi = MIN(semi, evaluate(s, s->from[i], w + 1));
		s->semi[w] = semi;
		s->label[w] = semi;
	}
}

void dominators_find(struct dominators *d)
{
	size_t bytes = ((size_t)d->count + 1) * sizeof(uint32_t);
	struct search s = {.d = d};

	reverse_edges(&s);
	free_words(d, &d->number);
	s.label = d->cursor;
	s.ancestor = huge_alloc(bytes);
	s.semi = huge_alloc(bytes);
	find_semidominators(&s);
	huge_free(s.ancestor, bytes);
	huge_free(s.from, ((size_t)s.first[d->count] + 1) * sizeof(uint32_t));
	huge_free(s.first, bytes);
	for (uint32_t w = 1; w < d->count; w++)
		while (d->above[w] > s.semi[w])
			d->above[w] = d->above[d->above[w]];
	huge_free(s.semi, bytes);
	free_words(d, &d->cursor);
}
