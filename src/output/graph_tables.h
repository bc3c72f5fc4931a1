/*
 * Tables about the types of a heap graph: bytes by type and by field, capacity of containers, and
 * padding; as text, and as members of a JSON object.
 */
#ifndef PTMEM_OUTPUT_GRAPH_TABLES_H
#define PTMEM_OUTPUT_GRAPH_TABLES_H

#include <stdio.h>

#include "base/json_write.h"
#include "graph/heap_graph.h"

/* Only what is largest of each; nothing of a graph without types. */
void graph_tables_print(FILE *file, const struct heap_graph *g);
/* "types", "fields", "containers" and "padding": all rows. */
void graph_tables_write(struct json_writer *w, const struct heap_graph *g);

#endif
