/* The heap graph as text, and as JSON for programs: what retains most, and who holds a block. */
#ifndef PTMEM_OUTPUT_GRAPH_REPORT_H
#define PTMEM_OUTPUT_GRAPH_REPORT_H

#include <stdio.h>

#include "base/types.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"
#include "output/graph_text.h"

struct graph_title {
	uint32_t pid;
	const char *command;
	const char *core;       /* path of a core file; NULL = of a process */
	uint64_t stopped_ns;
};

struct graph_wish {
	uint32_t depth;         /* levels below owners */
	/* what holds the block at an address, or those of a subject (graph_who.h); NULL = all */
	const char *holds;
};

void graph_report_print(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish);
void graph_report_write_json(FILE *file, const struct graph_title *t, const struct heap_graph *g,
			     const struct graph_wish *wish);

#endif
