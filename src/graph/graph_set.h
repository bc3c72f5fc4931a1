/*
 * What a set of blocks retains, as all of a type. Sets are bits by block.
 *
 *	each    what some block of the set retains by itself: adds up along the dominator tree
 *	all     what is reached only through blocks of the set: free without all of them
 *
 * A block that two blocks of the set lead to, and nothing else, is in the second one only.
 */
#ifndef PTMEM_GRAPH_GRAPH_SET_H
#define PTMEM_GRAPH_GRAPH_SET_H

#include "graph/heap_graph.h"

struct graph_amount {
	uint64_t bytes, blocks;
};

/* Both are without blocks that count twice. */
struct graph_amount graph_set_each(const struct heap_graph *g, const uint64_t *is_in);
/* @g has kept its edges. */
struct graph_amount graph_set_all(const struct heap_graph *g, const uint64_t *is_in);

#endif
