/*
 * What blocks that several owners lead to are called, in every report: "shared by cache in prog and
 * list in prog and 3 more", those first that lead to most of it; and how much each owner leads to.
 */
#ifndef PTMEM_OUTPUT_GRAPH_SHARERS_H
#define PTMEM_OUTPUT_GRAPH_SHARERS_H

#include <stdio.h>

#include "base/json_write.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"

/*
 * The name of all shared blocks, if @top is DOMINATORS_ROOT, or of what number @top, one of them,
 * retains. The caller frees it, as the next two.
 */
char *graph_sharers_text(const struct heap_graph *g, uint32_t top);
/* That of @row, for which graph_row_is_shared. */
char *graph_row_sharers_text(const struct heap_graph *g, const struct graph_row *row);
/* The name of number @number in the tree; of DOMINATORS_ROOT it is @shared. */
char *graph_number_text(const struct heap_graph *g, uint32_t number, const char *shared);

/* "cache in prog (1.2 MiB), table in prog (24 B) and 2 more", and the end of the line. */
void graph_sharers_print(FILE *f, const struct heap_graph *g, uint32_t top);
/* Adds the member "owners": what leads to shared blocks, those of @top or all. */
void graph_sharers_write(struct json_writer *w, const struct heap_graph *g, uint32_t top);

#endif
