/*
 * Leaked blocks by what they are, and what is known of the owner that lost them: who holds the
 * blocks of the same kind that are not lost, and where the lost ones point to. Both are facts of
 * the graph, from which a reader concludes; nothing is guessed.
 *
 *	kind   blocks that were allocated at one site; without a profile, blocks of one type
 *
 * If no other block is from the site, those count that its function allocated for other callers.
 */
#ifndef PTMEM_GRAPH_GRAPH_LEAKS_H
#define PTMEM_GRAPH_GRAPH_LEAKS_H

#include "graph/heap_graph.h"

struct graph_leak {
	uint32_t site;          /* index + 1 (graph_sites.h); 0 = unknown: then */
	uint32_t type;          /* index in the graph's types; GRAPH_TYPE_MAX = unknown */
	bool is_joint;          /* what several leaked blocks lead to; all kinds are one */
	uint64_t lost;          /* blocks that no other lost one leads to; is_joint: on top */
	uint64_t bytes, blocks; /* that they retain */
	/* blocks of the kind that are not lost, if there are none its function's */
	uint64_t others;
	bool by_function;
	uint32_t holder;        /* number of the owner of most of them; 0 = shared, or none */
	uint64_t held;          /* by it, or shared */
	uint32_t target;        /* number of the owner that most of their pointers lead to */
	uint64_t pointers;      /* to its blocks, or to shared ones (0); 0 = there are none */
};

struct graph_leaks {
	VEC(struct graph_leak) list; /* most bytes first; they add up to what is leaked */
};

/* @g has kept its edges. Free @out with vec_deinit. */
void graph_leaks_find(const struct heap_graph *g, struct graph_leaks *out);

/* The one of which @block is, a lost block that no other leads to; NULL = there is none. */
const struct graph_leak *graph_leaks_of(const struct graph_leaks *l, const struct heap_graph *g,
					uint32_t block);

#endif
