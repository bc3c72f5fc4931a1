/* Names of what holds blocks (graph/heap_graph.h), by the files of a process. */
#ifndef PTMEM_SESSION_INSPECT_GRAPH_NAMES_H
#define PTMEM_SESSION_INSPECT_GRAPH_NAMES_H

#include "base/types.h"

struct block_holders;
struct held_modules;
struct heap_graph;

/*
 * Does graph_build with the variables and functions of @modules. The names are valid UTF-8 without
 * control characters.
 */
bool graph_names_build(struct block_holders *h, const struct held_modules *modules,
		       struct heap_graph *out);

#endif
