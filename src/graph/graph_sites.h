/*
 * Where the blocks of a heap graph were allocated, as a profile knows it: call paths of functions'
 * names, without addresses, so that they need neither the process nor its files. And what each path
 * retains, and of which paths the blocks of each owner are.
 *
 *	call   a function, called by another call; the innermost one is malloc's caller
 *	site   the innermost call of a path that does not allocate for its caller (xmalloc)
 *
 * Blocks that the profile does not know, as those from before it began, have no path.
 */
#ifndef PTMEM_GRAPH_GRAPH_SITES_H
#define PTMEM_GRAPH_GRAPH_SITES_H

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"

struct heap_graph;

struct graph_call {
	uint32_t function;      /* its index */
	uint32_t caller;        /* index + 1 of an earlier call; 0 = none is known */
};

struct graph_path {
	uint32_t call;          /* the innermost; 0 = it has none, otherwise index + 1 */
	uint32_t site;          /* likewise: an outer one of these */
};

struct graph_sites {
	VEC(char *) functions;  /* names; owned */
	VEC(struct graph_call) calls;
	VEC(struct graph_path) paths;
	uint32_t *of_block;     /* by block: index of its path + 1; 0 = unknown. Owned */
	/* by name and by call: indexes, while they are added */
	HASH(uint32_t) by_name, by_call;
};

struct graph_sites *graph_sites_new(uint32_t blocks);
void graph_sites_free(struct graph_sites *s); /* may be NULL */

/*
 * The index + 1 of the call of @name by @caller (index + 1, 0 = none), added if it is new. A
 * function that calls itself is one call.
 */
uint32_t graph_sites_call(struct graph_sites *s, uint32_t caller, const char *name);

/* The site of block @node: index + 1 of a call; 0 = unknown, also without sites. */
uint32_t graph_site_of(const struct heap_graph *g, uint32_t node);

/* The function of @site (index + 1). */
const char *graph_site_function(const struct graph_sites *s, uint32_t site);

/* -- sums -- */

struct graph_site_sum {
	uint32_t owner;         /* number in the tree; only of graph_owner_sites */
	uint32_t site;          /* index + 1; 0 = unknown */
	uint64_t bytes, blocks; /* that were allocated there */
	/* that and what one of these retains, by itself; not of graph_owner_sites */
	uint64_t retained_bytes, retained_blocks;
};

struct graph_site_sums {
	VEC(struct graph_site_sum) list;
};

/*
 * Of each site of blocks: their bytes add up to the graph's. What retains most first. Free @out
 * with vec_deinit, as that of graph_owner_sites.
 */
void graph_sites_sum(const struct heap_graph *g, struct graph_site_sums *out);

/*
 * The sites of the blocks that each owner retains: by owner's number (DOMINATORS_ROOT: shared
 * blocks), most bytes first. Those of an owner add up to what it retains.
 */
void graph_owner_sites(const struct heap_graph *g, struct graph_site_sums *out);


#endif
