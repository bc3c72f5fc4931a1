/* What nodes, pointers and call sites of a heap graph are called in reports. */
#ifndef PTMEM_OUTPUT_GRAPH_TEXT_H
#define PTMEM_OUTPUT_GRAPH_TEXT_H

#include <stdio.h>

#include "graph/graph_patterns.h"
#include "graph/heap_graph.h"

/* "cache in prog", "stack of thread 12", "leaked". The caller frees it. */
char *graph_owner_text(const struct graph_owner *o);
/* The same, or "0x55d0c0de2a0  64 bytes, Session". The caller frees it. */
char *graph_node_text(const struct heap_graph *g, uint32_t node);
/* The name of the type @type of blocks; NULL = unknown. */
const char *graph_type_name(const struct heap_graph *g, uint32_t type);

/* Whether @type is "48 bytes" or "40 to 48 bytes": only the size of such blocks is known. */
bool graph_type_is_size(const char *type);

/* "1.2 MiB (1,258,291 bytes) in 2,000 blocks", and the end of the line. */
void graph_print_amount(FILE *f, uint64_t bytes, uint64_t blocks);

/* A way that is being printed: pointer by pointer, the owner's first. */
struct graph_way_text {
	FILE *file;
	bool is_many;           /* the last field was "[*]": its elements follow */
};

/* "cache.by_user[*]"; without a field the place, unless it is unknown: "stack of thread 1 +0x8" */
void graph_way_begin(struct graph_way_text *w, const char *name, const char *field,
		     uint32_t place);
/*
 * " -> Session.orders[*]" of a pointer in a block. Elements of an array or a container belong to
 * what is before: "sessions[*].user", "by_id[*].second". @type, @field: NULL = unknown.
 */
void graph_way_step(struct graph_way_text *w, const char *type, const char *field, uint32_t place);

/*
 * The steps of pattern @index: "cache.by_user[*] -> ... -> Session.orders[*]", where "..." is any
 * number of blocks of types that the pattern has. The caller frees it.
 */
char *graph_pattern_text(const struct heap_graph *g, const struct graph_patterns *p,
			 uint32_t index);

/* "parse <- load <- main" of a site (graph/graph_sites.h). The caller frees it. */
char *graph_site_text(const struct heap_graph *g, uint32_t site);

#endif
