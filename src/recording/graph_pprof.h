/*
 * A heap graph as pprof's gzipped protocol buffer: its stacks are ways down the dominator tree,
 * from the owner on, by types of blocks. So what pprof adds up for a function is what an owner, or
 * the blocks of a type, each by itself, retain.
 *
 *	cache in prog;Session;Order *[];Order      inuse_space, inuse_objects: these blocks alone
 *
 * A type occurs once in a stack, however long a list is: at the last of its places. What is deeper
 * than 100 types belongs to the last one.
 */
#ifndef PTMEM_RECORDING_GRAPH_PPROF_H
#define PTMEM_RECORDING_GRAPH_PPROF_H

#include <stdio.h>

#include "graph/heap_graph.h"

/* The values add up to the graph. The caller checks the stream for errors. */
void graph_pprof_write(FILE *out, const struct heap_graph *g, const char *command);

#endif
