/* The recording of a session as it is in its file at the end: with all names and lines. */
#ifndef PTMEM_RECORDING_COMPLETE_H
#define PTMEM_RECORDING_COMPLETE_H

#include "session/recording_run_internal.h"

struct recording;
struct session;

/* What is known at the end: @why it ended, NULL = unknown, and what ptmem cost. */
void recording_complete_values(struct session *s, const char *why);

/* What @s, whose process is running, has counted so far: the base of the next part. */
struct recording_base recording_base_now(const struct session *s);

/* The recording up to process.end_ns; the caller frees it. */
struct recording *recording_complete_new(struct session *s);

/* The name of the file if it cannot be written to its place; the caller frees it. */
char *recording_complete_name(uint32_t pid, unsigned part);

/* Writes @r to @path, thinned to --record-limit. Not 0 after a message. */
int recording_complete_write(const struct session *s, const struct recording *r, const char *path);

/*
 * Writes the recording so far to @path, as long as the program runs: with quick names and without
 * an end. 0 or -errno, without a message.
 */
int recording_unfinished_write(struct session *s, const char *path);

#endif
