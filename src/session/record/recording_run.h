/*
 * --record, --html, --listen: the recording of each session, from its beginning to its file
 * (doc/format.md).
 *
 * The file is there before a started program's first instruction. While the program runs, what
 * changed is appended about each second, and more often at first, so that the file can be read
 * whatever happens to ptmem. In the end it is replaced by one that is complete, with
 * all names and lines.
 *
 * Everything in a recording that is not from events is in a list of values, which event files
 * contain, too: so a replay gives the same recording.
 */
#ifndef PTMEM_SESSION_RECORD_RECORDING_RUN_H
#define PTMEM_SESSION_RECORD_RECORDING_RUN_H

#include "base/types.h"

struct session;

/* Its program begins (not in a replay, where values come from the file). */
void recording_run_start(struct session *s);
void recording_run_fork(const struct session *parent, struct session *child);
void recording_run_free(struct session *s);

/*
 * Samples and appends everything due in all sessions of a run. Returns the time of the next
 * call.
 */
struct run;
uint64_t recording_run_tick(struct run *run, uint64_t now_ns);

/*
 * For --listen: appends everything new to a journal of the whole run: the file of --record, or, if
 * that has less, one in memory. Returns a descriptor for reading it, owned by the caller, and its
 * size; or -errno.
 */
int recording_run_update(struct session *s, uint64_t *size_out);

/* The leak kinds of blocks, from a finished leak check. */
struct leakcheck;
struct leaks;
void recording_run_leaks(struct session *s, const struct leakcheck *c, const struct leaks *l);

/* The process has ended, or ptmem detaches: records the final values. @why: NULL = unknown. */
void recording_run_end(struct session *s, const char *why);
/* Writes the file, and the page of --html. */
void recording_run_finish(struct session *s);
/* The session needs no file: it was a fork that executed another program. */
void recording_run_drop(struct session *s);

/*
 * --record-every: the recording of a session in parts, each a file of its own.
 *
 *	part 1           part 2                       part 3
 *	|----------------|----------------------------|----
 *	                 its times, sums and peak are those since its beginning; blocks from
 *	                 before are live from its beginning, at their call paths
 *
 * At the end of a part a copy of ptmem replaces its file by the complete one (recording_now.h). So
 * each part can be read alone, and the sums of all parts are those of one recording. What --listen
 * serves, and the page of --html, come from a history of the whole run (profile/history.h).
 */

#endif
