/*
 * What ptmem cost the program while it was recorded, and how many stacks are complete: values that
 * a recording has at its end.
 */
#ifndef PTMEM_SESSION_RECORDING_COST_H
#define PTMEM_SESSION_RECORDING_COST_H

#include "session/recording_run_internal.h"

struct session;

/* How exact the times of events are, if they are not; ms. */
#define TIMES_TEXT "exact to %.1f ms only: calls could not read the CPU's counter"

struct recording_cost {
	size_t count;
	struct {
		const char *key;
		char text[160];
	} value[6]; /* two of "lost" */
};

/* What @s, whose process runs, has counted so far: the base of the next part. */
struct recording_base recording_cost_now(const struct session *s);

/* The values since @base, at the end (session_end.pauses). */
void recording_cost_since(const struct session *s, const struct recording_base *base,
			  struct recording_cost *out);

/* Whether @key is that of one of these. */
bool recording_cost_is(const char *key);

#endif
