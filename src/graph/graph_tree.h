/*
 * As much of the dominator tree of a heap graph as a page has room for, however large the graph is:
 * what retains most first, on any level. Hides: what is left out, and that rows for it keep the
 * sums exact.
 *
 *	row  parent
 *	0            cache in prog            retains 100 bytes in 3 blocks
 *	1            shared by several owners retains 24 in 1
 *	2    0       a block                  retains 80 in 2
 *	3    0       1 other                  retains 20 in 1
 *
 * The rows without a parent add up to the graph; the rows below a row, if there are any, to what it
 * retains without its own bytes.
 */
#ifndef PTMEM_GRAPH_GRAPH_TREE_H
#define PTMEM_GRAPH_GRAPH_TREE_H

#include "graph/graph_view.h"

struct graph_tree_row {
	enum graph_row_kind kind;
	uint32_t parent;        /* index + 1; 0 = none. Parents come first */
	uint32_t node;          /* of an owner or a block */
	uint64_t bytes, blocks; /* retained */
	uint64_t count;         /* REST: of those that it replaces; SHARED: of blocks on top */
};

struct graph_tree {
	/* rows below one parent: most first, and REST last */
	VEC(struct graph_tree_row) list;
};

struct graph_tree_limits {
	size_t rows;            /* in all, without those of kind REST: at most one for each */
	size_t most;            /* below one row */
	size_t owners;          /* on top; these are there before anything else */
	uint32_t depth;         /* levels below owners */
};

/*
 * Takes 8 bytes of memory for each node of the graph while it runs. Free @out with vec_deinit.
 */
void graph_tree_find(const struct heap_graph *g, const struct graph_tree_limits *limits,
		     struct graph_tree *out);

#endif
