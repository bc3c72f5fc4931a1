/*
 * Tables about the types of a heap graph: bytes by type and by field, capacity of containers, and
 * padding, equal strings; as text, and as members of a JSON object.
 */
#ifndef PTMEM_OUTPUT_GRAPH_TABLES_H
#define PTMEM_OUTPUT_GRAPH_TABLES_H

#include <stdio.h>

#include "base/json_write.h"
#include "graph/heap_graph.h"

/*
 * Only what is largest of each; nothing of a graph without types. @with_text: also how strings
 * begin, which are data of the program.
 */
void graph_tables_print(FILE *file, const struct heap_graph *g, bool with_text);
/*
 * "types", "fields", "containers", "padding" and "equal_strings": of each the @most rows that are
 * largest, without texts.
 */
void graph_tables_write(struct json_writer *w, const struct heap_graph *g, size_t most);

#endif
