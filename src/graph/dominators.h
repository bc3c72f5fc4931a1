/*
 * The dominator tree of a directed graph, by Semi-NCA (Georgiadis, Linear-Time Algorithms for
 * Dominators and Related Problems, 2005, 2.2): what every path from the root to a node passes.
 *
 * The caller visits nodes below a root of its own, in layers: a node belongs to the layer in which
 * it was visited first, and an edge from a later layer to an earlier one does not count. So what
 * the roots of one layer hold is decided without those of later ones.
 *
 *	dominators_init; for each layer: dominators_add_layer, dominators_visit...;
 *	dominators_reverse; dominators_find
 *
 * Time is O(m log n), memory 20 bytes a node while it searches, and 4 for each edge that is not one
 * of the tree of visits. Nothing is recursive: the graph may be a path of any length.
 */
#ifndef PTMEM_GRAPH_DOMINATORS_H
#define PTMEM_GRAPH_DOMINATORS_H

#include "base/alloc.h"
#include "base/types.h"

#define DOMINATORS_LAYERS 8u
#define DOMINATORS_ROOT 0u /* the number of the root, which is no node */

/*
 * Several children of the root lead to @number, another child of it: one of them is @by, or what is
 * below that. Each occurs once.
 */
struct dominators_shared {
	uint32_t number, by;
};

/* Nodes get numbers from 1 on in the order of visits; an ancestor's are lower. */
struct dominators {
	/* the graph, which is the caller's: node n has edge[first[n]] to edge[first[n + 1] - 1] */
	uint32_t nodes;
	const uint32_t *first;
	const uint32_t *edge;   /* node << 1 | a bit of the caller's */
	uint32_t count;         /* numbers in use, that of the root included */
	uint32_t *number;       /* by node; 0 = not visited */
	uint32_t *node;         /* by number */
	/* by number: that from which it was visited; after dominators_find its dominator */
	uint32_t *above;
	uint32_t layer[DOMINATORS_LAYERS]; /* the first number of each */
	uint32_t layers;
	/* a bit by number: the visit's edge had the caller's bit; to dominators_reverse */
	uint64_t *is_marked;
	/* by number: the next edge; when all were visited, of reversed edges the first one */
	uint32_t *cursor;
	uint32_t *from, edges;  /* reversed edges: numbers; how many */
	/* after dominators_find, ascending by number: what leads to children of the root */
	VEC(struct dominators_shared) shared;
};

/* @nodes: at most 2^31 - 1; @first has one element more. Both must outlive @d. */
void dominators_init(struct dominators *d, uint32_t nodes, const uint32_t *first,
		     const uint32_t *edge);
void dominators_deinit(struct dominators *d);

void dominators_add_layer(struct dominators *d);

/*
 * Visits @node and all that it leads to, unless it was visited before: returns whether. @under: the
 * number from which an edge leads here, DOMINATORS_ROOT or that of a node below which everything
 * was visited that was visited since.
 */
bool dominators_visit(struct dominators *d, uint32_t node, uint32_t under);

/* When all were visited: from now on the graph is not needed. */
void dominators_reverse(struct dominators *d);
/* After that. */
void dominators_find(struct dominators *d);

#endif
