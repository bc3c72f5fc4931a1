/*
 * Everything in a recording that is not from events: a list of keys and values, which event files
 * contain, too. Markers and names of threads are among them.
 */
#ifndef PTMEM_RECORDING_VALUES_H
#define PTMEM_RECORDING_VALUES_H

#include "base/types.h"

struct recording;
struct recording_span;
struct session;

/* A moment, in seconds, as META has it. */
struct recording_moment {
	char start[32];         /* since 1970 */
	char monotonic[32];     /* CLOCK_MONOTONIC */
};

/* Sets @m to the moment @ns of CLOCK_MONOTONIC. */
void recording_moment_set(struct recording_moment *m, uint64_t ns);

/* Creates the session's recording unless it has one. */
void recording_values_begin(struct session *s);

/* Records that @key is @value; the last value counts. Nothing if nothing is recorded. */
void recording_values_add(struct session *s, const char *key, const char *value);
ATTR_PRINTF(3, 4)
void recording_values_set(struct session *s, const char *key, const char *fmt, ...);
/* Records a marker at the current time; @kind is one word. */
void recording_values_mark(struct session *s, const char *kind, const char *text);

/* Reads the name of @thread, or of all threads that are new. */
void recording_values_name_thread(struct session *s, uint32_t thread);
void recording_values_name_threads(struct session *s);

/*
 * For a recording of @span: the values from number @first on, with markers as such, and the exact
 * totals of samples.
 */
void recording_values_copy(struct session *s, const struct recording_span *span,
			   struct recording *out, size_t first);

/* Milliseconds since the process of @s began. */
uint64_t recording_values_clock(const struct session *s, uint64_t now_ns);

#endif
