/*
 * --record, --html, --listen: the recording of each session, from its beginning to its file
 * (doc/format.md).
 *
 * The file is there before a started program's first instruction. While the program runs, what
 * changed is appended about each second, and more often at first, so that the file can be read
 * whatever happens to ptmem. In the end it is replaced by one that is complete, with
 * all names and lines.
 *
 * What a recording knows besides the events is a list of values, which a file of events has, too:
 * so a replay gives the same recording.
 */
#ifndef PTMEM_RECORDING_RUN_H
#define PTMEM_RECORDING_RUN_H

#include "base/types.h"

struct session;

/* Its program begins (not in a replay, where values come from the file). */
void recording_run_start(struct session *s);
void recording_run_fork(const struct session *parent, struct session *child);
void recording_run_free(struct session *s);

/* Notes that @key is @value; the last one counts. */
void recording_run_value(struct session *s, const char *key, const char *value);

/* @thread still exists, for the last time: its name is read. */
void recording_run_thread_exiting(struct session *s, uint32_t thread);
/* Samples and appends what is due in all sessions of a run. The time of the next call. */
struct run;
uint64_t recording_run_tick(struct run *run, uint64_t now_ns);

/*
 * --listen: appends what is not in the journal yet, which is in memory unless --record names a
 * file. A descriptor to read it, the caller's, and its size; or -errno.
 */
int recording_run_look(struct session *s, uint64_t *size_out);

/* Leak kinds of blocks, found by a leak check that is over. */
struct leakcheck;
void recording_run_leaks(struct session *s, const struct leakcheck *c);

/* The process is gone, or ptmem leaves it: what is known only now. @why: NULL = not known. */
void recording_run_end(struct session *s, const char *why);
/* Writes the file: not 0 after a message. */
int recording_run_finish(struct session *s);
/* The session needs no file: it was a fork that executed another program. */
void recording_run_drop(struct session *s);

#endif
