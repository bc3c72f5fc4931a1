/*
 * The last inspection of a session, for its recording and for --listen: at the end, by SIGUSR1, or
 * by a monitor command.
 */
#ifndef PTMEM_SESSION_INSPECT_LAST_INSPECTION_H
#define PTMEM_SESSION_INSPECT_LAST_INSPECTION_H

#include <stdint.h>
#include <stdio.h>

struct inspection;
struct recording;
struct session;

struct last_inspection {
	struct recording *tables; /* recording_inspect_new; NULL = there was none; owned */
	uint32_t number;          /* of inspections so far */
	/* the same in memory, for the server of --listen; NULL = it is not needed; owned */
	FILE *file;
	uint64_t size;
	/* its heap graph as a file (graph_file.h), in memory; NULL = it has none; owned */
	FILE *graph;
	uint64_t graph_size;
	uint32_t graph_number;    /* of graphs so far */
};

/* Keeps @i, which was judged, instead of an earlier one, if @s is recorded. */
void last_inspection_set(struct session *s, const struct inspection *i);
void last_inspection_deinit(struct last_inspection *k);

/* Adds the last inspection and its graph, if there are any, to @r. */
void last_inspection_add(const struct last_inspection *k, struct recording *r);

#endif
