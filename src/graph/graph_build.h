/*
 * Makes a heap graph of what was kept of a stopped process (inspect/holders.h): the process runs on
 * meanwhile.
 */
#ifndef PTMEM_GRAPH_GRAPH_BUILD_H
#define PTMEM_GRAPH_GRAPH_BUILD_H

#include "graph/heap_graph.h"
#include "inspect/holders.h"

/* Part of the data of the program or a library. */
struct graph_data {
	taddr_t first;          /* where the variable or section begins */
	taddr_t start, end;     /* around the address: all of this is that one's */
	bool is_variable;
};

/* What knows the files of the program and its libraries. */
struct graph_namer {
	/* What has the word at @addr; false: unknown. */
	bool (*data)(void *ctx, taddr_t addr, struct graph_data *out);
	/* Fills the name and the object of a variable, section or frame. */
	void (*name)(void *ctx, struct graph_owner *o);
	void *ctx;
};

/*
 * Fills @g, which is initialized; it may want to keep its edges. heap_graph_solve comes next. Takes
 * the memory of @h, for which block_holders_find was not called. False: there are more blocks, or
 * pointers, than numbers.
 */
bool graph_build(struct block_holders *h, const struct graph_namer *namer, struct heap_graph *g);

#endif
