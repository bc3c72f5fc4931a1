/*
 * What holds many blocks: the shortest ways to them, those that differ only in which element of an
 * array, a list or a container they pass being one pattern.
 *
 *	cache.by_user[*] -> Session.orders[*]     two steps
 *
 * A step is a pointer in an owner or in blocks of a type. One from a type that the pattern already
 * has takes the place of that one, and what was between: a list of a million nodes is one pattern,
 * and a tree has as many as its nodes have pointers.
 */
#ifndef PTMEM_GRAPH_GRAPH_PATTERNS_H
#define PTMEM_GRAPH_GRAPH_PATTERNS_H

#include "graph/heap_graph.h"

#define GRAPH_PATTERNS_MAX 65536u /* ways beyond are one, the first */

struct graph_pattern {
	uint32_t before;        /* index + 1 of the steps before; 0 = this one is the first */
	/* what has the pointer: GRAPH_FIELDS_OWNER + index of an owner, or a type of blocks */
	uint32_t of;
	uint32_t place;         /* of one such pointer, in words; GRAPH_FAR: unknown, or of many */
	const char *field;      /* of it, the graph's; NULL = unknown */
	bool is_many;           /* ways that pass more blocks are in it */
	/* of the blocks that were wanted: those at its end */
	uint64_t blocks, bytes;
	taddr_t example;        /* the one at the lowest address */
};

struct graph_patterns {
	VEC(struct graph_pattern) list; /* [0]: of all ways that have none of their own */
	VEC(uint32_t) groups;   /* those with blocks: indexes, most bytes first */
};

/*
 * @is_wanted: a bit by block. Each block that is wanted is in one group, by the way that
 * graph_way_find finds. Free @out with graph_patterns_deinit.
 */
void graph_patterns_find(const struct heap_graph *g, const uint64_t *is_wanted,
			 struct graph_patterns *out);
void graph_patterns_deinit(struct graph_patterns *p);

#endif
