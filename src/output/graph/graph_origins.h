/*
 * Tables of where the blocks of a heap graph were allocated, as a profile knows it: what each call
 * path retains, and the call paths of each owner; of what is leaked, and of the owners of what is
 * shared.
 */
#ifndef PTMEM_OUTPUT_GRAPH_ORIGINS_H
#define PTMEM_OUTPUT_GRAPH_ORIGINS_H

#include <stdio.h>

#include "base/json_write.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"

/* Below the rows, of which the owners in @rows are a part. */
void graph_origins_print(FILE *f, const struct heap_graph *g, const struct graph_rows *rows);
/* That of @block, a lost one that no other leads to: its row of the table of leaks. */
void graph_leak_print(FILE *f, const struct heap_graph *g, uint32_t block);
/* Adds the members "allocated", "owners_allocated" and "leaks". */
void graph_origins_write(struct json_writer *w, const struct heap_graph *g);

/* "by cache in prog (1.2 MiB), table in prog (24 B) and 2 others", and the end of the line. */
void graph_sharers_print(FILE *f, const struct heap_graph *g, uint32_t top);
/* Adds the member "owners": who leads to shared blocks, those of @top or all. */
void graph_sharers_write(struct json_writer *w, const struct heap_graph *g, uint32_t top);

#endif
