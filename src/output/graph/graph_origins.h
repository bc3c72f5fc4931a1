/*
 * Tables of where the blocks of a heap graph were allocated, as a profile knows it: what each call
 * path retains, and the call paths of each owner; and of what is leaked.
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
/* Adds the member "functions": those of site @site (graph/graph_sites.h), the innermost first. */
void graph_site_write(struct json_writer *w, const struct heap_graph *g, uint32_t site);

#endif
