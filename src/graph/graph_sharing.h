/*
 * Who shares: of blocks that several owners lead to, which owners these are, and to how many of the
 * shared bytes each of them leads.
 */
#ifndef PTMEM_GRAPH_GRAPH_SHARING_H
#define PTMEM_GRAPH_GRAPH_SHARING_H

#include "graph/heap_graph.h"

#define GRAPH_SHARERS_MAX 256u /* owners that are followed: those with most pointers there */

struct graph_sharer {
	uint32_t owner;         /* its number in the tree */
	uint64_t bytes, blocks; /* shared ones that it leads to; several owners lead to each */
};

struct graph_sharing {
	VEC(struct graph_sharer) list; /* most bytes first */
	uint64_t others;        /* owners with pointers to shared blocks that were not followed */
	bool is_found;          /* only of heap_graph.sharing: it has the answer for all */
};

struct graph_sharing *graph_sharing_new(void);
void graph_sharing_free(struct graph_sharing *s); /* may be NULL */

/*
 * The owners that lead to shared blocks; to those that number @top, a shared block that no other
 * one dominates, retains, unless it is DOMINATORS_ROOT. @g has kept its edges. Free @out with
 * vec_deinit.
 */
void graph_sharing_find(const struct heap_graph *g, uint32_t top, struct graph_sharing *out);

/*
 * The owner of each number in the tree, that of the first level; DOMINATORS_ROOT: it is shared. The
 * caller frees it.
 */
uint32_t *graph_owner_numbers(const struct heap_graph *g);

/* The number in the tree of each node; 0 = it has none. The caller frees it. */
uint32_t *graph_numbers(const struct heap_graph *g);

#endif
