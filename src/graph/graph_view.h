/*
 * The dominator tree of a heap graph as rows, to a depth: what retains most first, and what is left
 * of each level in one row. And the ways from owners to a block.
 */
#ifndef PTMEM_GRAPH_GRAPH_VIEW_H
#define PTMEM_GRAPH_GRAPH_VIEW_H

#include "graph/heap_graph.h"

enum graph_row_kind {
	GRAPH_ROW_OWNER,
	GRAPH_ROW_SHARED,       /* blocks that several owners lead to */
	GRAPH_ROW_BLOCK,
	GRAPH_ROW_REST,         /* of the rows before, on one level */
};

struct graph_row {
	enum graph_row_kind kind;
	uint32_t level;         /* 0 for owners; a row's children follow it */
	uint32_t node;          /* of an owner or a block; its number in the tree */
	uint32_t number;
	uint64_t bytes, blocks; /* retained */
	uint64_t count;         /* REST: of rows that it replaces; SHARED: of blocks on top */
};

struct graph_rows {
	VEC(struct graph_row) list;
};

struct graph_limits {
	uint32_t depth;         /* levels below owners */
	size_t most, most_below; /* rows on level 0, on each other one */
};

/*
 * Level 0: owners that retain anything, the shared blocks if there are any, and OWNER_LOST; their
 * bytes and blocks add up to those of the graph. Free @out with vec_deinit.
 */
void graph_rows_find(const struct heap_graph *g, const struct graph_limits *limits,
		     struct graph_rows *out);

/* What leads to a shared block, directly or through other shared ones. */
struct graph_holders {
	VEC(uint32_t) owners;   /* indexes, those with the shortest ways first */
	uint32_t count;         /* of all */
};

/* Whether @r is a block that only several owners together hold. */
bool graph_row_is_shared(const struct heap_graph *g, const struct graph_row *r);

/* The owners of @r, for which graph_row_is_shared; at most @most. Free with vec_deinit. */
void graph_holders_find(const struct heap_graph *g, const struct graph_row *r, size_t most,
			struct graph_holders *out);

/* A step of a way: a pointer of @node, where (graph_block's place), to the next step's node. */
struct graph_step {
	uint32_t node;
	uint32_t place;         /* of the last step: 0 */
};
struct graph_way {
	VEC(struct graph_step) steps; /* from an owner to the block */
};

/*
 * The shortest way to @block from an owner of the lowest rank that leads to it. A lost block's
 * begins at the lost block that leads to it. Free @out with vec_deinit.
 */
void graph_way_find(const struct heap_graph *g, uint32_t block, struct graph_way *out);

/* The same for many blocks, in one search of the graph, which must outlive it. */
struct graph_ways;
struct graph_ways *graph_ways_new(const struct heap_graph *g);
void graph_ways_free(struct graph_ways *w);
/* @out is empty if the way has more than @most steps. */
void graph_ways_find(const struct graph_ways *w, uint32_t block, size_t most,
		     struct graph_way *out);

/* The number of @node in the tree. Takes time proportional to the graph. */
uint32_t graph_number_of(const struct heap_graph *g, uint32_t node);

#endif
