/*
 * The heap graph as JSON for the page (html_page.h) and for other programs: doc/format.md defines
 * it. Its size is bounded, whatever that of the graph is (graph/graph_tree.h).
 */
#ifndef PTMEM_OUTPUT_GRAPH_PAGE_H
#define PTMEM_OUTPUT_GRAPH_PAGE_H

#include <stdio.h>

#include "output/graph/graph_report.h"

struct json_writer;

/* An object, the member @name, or a document of its own if that is NULL. */
void graph_page_write_json(struct json_writer *w, const char *name, const struct graph_title *t,
			   const struct heap_graph *g);

/* The page with nothing else. The caller checks the stream for errors. */
void graph_page_write(FILE *out, const struct graph_title *t, const struct heap_graph *g);

#endif
