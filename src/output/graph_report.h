/* The heap graph as text, and as JSON for programs: what retains most, and who holds a block. */
#ifndef PTMEM_OUTPUT_GRAPH_REPORT_H
#define PTMEM_OUTPUT_GRAPH_REPORT_H

#include <stdio.h>

#include "base/types.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"

struct json_writer;

struct graph_title {
	uint32_t pid;
	const char *command;
	const char *core;       /* path of a core file; NULL = of a process */
	uint64_t stopped_ns;
};

struct graph_wish {
	uint32_t depth;         /* levels below owners */
	const char *holds;      /* an address: what holds the block there; NULL = not wanted */
};

/* Whether @text can be graph_wish.holds. */
bool graph_report_is_address(const char *text);

void graph_report_print(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish);
void graph_report_write_json(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			     const struct graph_wish *wish);

/* "cache in prog", "stack of thread 12", "leaked". The caller frees it. */
char *graph_owner_text(const struct graph_owner *o);
extern const char *const graph_row_kind_name[GRAPH_ROW_REST + 1]; /* "owner" */
/* Of a block; NULL = unknown. */
const char *graph_type_text(const struct heap_graph *g, uint32_t block);

/*
 * "cache.by_user[*] -> Session.orders[*]": the pointers of @way, without what the last one leads
 * to; a long one without its middle. "" of a way without pointers. The caller frees it.
 */
char *graph_way_text(const struct heap_graph *g, const struct graph_way *way);

/* The member "states": bytes and blocks by the states of --leak-check. */
void graph_states_write(struct json_writer *w, const struct heap_graph *g);

#endif
