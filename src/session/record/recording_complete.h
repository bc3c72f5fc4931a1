/*
 * The recording of a session as a whole: from what it is made, with all names and lines, and with
 * the results of the last leak check.
 */
#ifndef PTMEM_SESSION_RECORD_RECORDING_COMPLETE_H
#define PTMEM_SESSION_RECORD_RECORDING_COMPLETE_H

#include "recording/recording_build.h"
#include "session/record/recording_values.h"

struct leakcheck;
struct leaks;
struct recording;

/*
 * The tables of leaks only, of a finished check; the caller frees it. @l: its sites, not yet
 * sorted, and their holders.
 */
struct recording *recording_leaks_new(const struct leakcheck *c, const struct leaks *l);

/* What recordings of a session are made from, with modules and functions looked up there. */

struct recording_span;
struct session;

/*
 * For a recording of @span. @is_quick: functions from the symbol tables only, since the program is
 * waiting. @report: as session_report makes it; it must outlive the result.
 */
struct recording_input session_recording_input(struct session *s, const struct recording_span *span,
					       const struct report *report, bool is_quick);

/* The recording of a session as it is in its file at the end: with all names and lines. */

/* What is known at the end: @why it ended, NULL = unknown, and what ptmem cost. */
void recording_complete_values(struct session *s, const char *why);

/* The recording of @span, up to process.end_ns; the caller frees it. */
struct recording *recording_complete_new(struct session *s, const struct recording_span *span);

/* For out_content.end; the caller frees it. */
char *recording_part_end(unsigned part);

/* Writes @r, of the file's span, to @path, thinned to --record-limit. Not 0 after a message. */
int recording_complete_write(const struct session *s, const struct recording *r, const char *path);

/*
 * Writes the recording so far to @path, as long as the program runs: with quick names and without
 * an end. 0 or -errno, without a message.
 */
int recording_unfinished_write(struct session *s, const char *path);

#endif
