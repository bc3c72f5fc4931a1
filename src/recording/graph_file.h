/*
 * Files of heap graphs: the line GRAPH_FILE_HEAD, and a recording (recording_format.h) that has
 * only the tables of a graph. They have names of variables, functions and types, and addresses and
 * sizes, but nothing of what is in the blocks. What is computed of a graph is computed again when
 * it is read, so that no file can make it contradict itself.
 */
#ifndef PTMEM_RECORDING_GRAPH_FILE_H
#define PTMEM_RECORDING_GRAPH_FILE_H

#include <stdio.h>

#include "base/types.h"
#include "graph/heap_graph.h"
#include "output/graph/graph_report.h"

#define GRAPH_FILE_HEAD "ptmem-graph 1\n"

/*
 * The same tables may be among those of another recording: that of a profile for which a graph was
 * made.
 */

struct recording;

/* A graph that was read. */
struct graph_file {
	struct heap_graph graph;
	char *command;          /* owned */
	uint32_t pid;
	uint64_t stopped_ns;
};

/* What is written of a process, besides its graph. */
struct graph_source {
	const char *command;
	uint32_t pid;
	uint64_t stopped_ns;
};

/* @g must have kept its edges. 0 or -errno. */
int graph_file_write(FILE *file, const struct heap_graph *g, const struct graph_source *of);

bool graph_file_is(const char *data, size_t size);
/* -EINVAL and *@why_out, which the caller frees, if @data is damaged. */
int graph_file_read(const char *data, size_t size, struct graph_file **out, char **why_out);
/* The tables alone. */
int graph_file_rows(const char *data, size_t size, struct recording **out, char **why_out);

/* Whether @r has the tables of a graph. */
bool graph_file_is_in(const struct recording *r);
/* The graph in @r; results are those of graph_file_read. */
int graph_file_take(const struct recording *r, struct graph_file **out, char **why_out);
/* Why it cannot be taken; NULL: it can. Static. */
const char *graph_file_check(const struct recording *r);
/* Adds all tables of the graph in @from, which has one, to @r, which has none. */
void graph_file_copy(const struct recording *from, struct recording *r);
void graph_file_free(struct graph_file *f); /* may be NULL */

/* Valid as long as @f. */
struct graph_title graph_file_title(const struct graph_file *f);

#endif
