/* Names of what holds blocks (graph/heap_graph.h), by the files of a process. */
#ifndef PTMEM_SESSION_INSPECT_GRAPH_NAMES_H
#define PTMEM_SESSION_INSPECT_GRAPH_NAMES_H

#include "base/types.h"

struct inspect_report;
struct inspect_input;
struct held_modules;
struct heap_graph;

/*
 * Does graph_build with the holders of @r, and the variables, types and functions of @modules. @in:
 * the memory, all zero if it is gone: then types by debug information are unknown. The names are
 * valid UTF-8 without control characters.
 */
bool graph_names_build(struct inspect_report *r, const struct held_modules *modules,
		       const struct inspect_input *in, struct heap_graph *out);

#endif
