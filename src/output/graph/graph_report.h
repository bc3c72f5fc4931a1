/* The heap graph as text, and as JSON for programs: what retains most, and who holds a block. */
#ifndef PTMEM_OUTPUT_GRAPH_REPORT_H
#define PTMEM_OUTPUT_GRAPH_REPORT_H

#include <stdio.h>

#include "base/types.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"
#include "output/brief.h"
#include "output/graph/graph_text.h"

struct json_writer;

struct graph_title {
	uint32_t pid;
	const char *command;
	const char *core;       /* path of a core file; NULL = of a process */
	uint64_t stopped_ns;
	double touched_seconds; /* what was not touched in that time is known; 0 = it is not */
};

struct graph_wish {
	uint32_t depth;         /* levels below owners */
	/* what holds the block at an address, or those of a subject (graph_who.h); NULL = all */
	const char *holds;
	bool shows_strings;     /* text: how strings that are there often begin */
};

void graph_report_print(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish);
void graph_report_write_json(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			     const struct graph_wish *wish);

/* The same as findings, to one level below owners, whatever @wish says. */
void graph_report_brief(struct brief *b, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish);

extern const char *const graph_row_kind_name[GRAPH_ROW_REST + 1]; /* "owner" */

/*
 * "cache.by_user[*] -> Session.orders[*]": the pointers of @way, without what the last one leads
 * to; a long one without its middle. "" of a way without pointers. The caller frees it.
 */
char *graph_way_text(const struct heap_graph *g, const struct graph_way *way);

/* The member "states": bytes and blocks by the states of --leak-check. */
void graph_states_write(struct json_writer *w, const struct heap_graph *g);

#endif
