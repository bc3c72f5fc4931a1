/*
 * What holds the blocks of a type, or those that a function allocated: they, what they retain, and
 * the shortest ways to them, by pattern (graph/graph_patterns.h).
 *
 *	SUBJECT             a type, as the tables name it; if there is none of this name, a function
 *	type:SUBJECT        a type
 *	function:SUBJECT    a function, with its parameters or without: what its calls allocated
 */
#ifndef PTMEM_OUTPUT_GRAPH_WHO_H
#define PTMEM_OUTPUT_GRAPH_WHO_H

#include <stdio.h>

#include "base/json_write.h"
#include "graph/heap_graph.h"

void graph_who_print(FILE *f, const struct heap_graph *g, const char *subject);
/* Adds the member "who_holds", an object. */
void graph_who_write(struct json_writer *w, const struct heap_graph *g, const char *subject);

#endif
