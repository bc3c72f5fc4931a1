/*
 * What a session writes: the massif file and xtree, folded stacks and flame graphs, the page of
 * --html; and when the reports of leaks, paths and --inspect are made.
 */
#ifndef PTMEM_SESSION_SESSION_OUTPUT_H
#define PTMEM_SESSION_SESSION_OUTPUT_H

#include "base/types.h"
#include "output/report.h"

struct session;

/* Writes the profile, or the xtree, to @path. 0 or -errno. */
int session_output_massif(struct session *s, const char *path);
int session_output_xtree(struct session *s, const char *path, uint64_t now_ns);
/* The state at @now_ns as a file with one snapshot, SNAPSHOT_EMPTY or SNAPSHOT_DETAILED. */
int session_output_now(struct session *s, const char *path, enum snapshot_kind kind,
		       uint64_t now_ns);
/* Writes the heap's profile so far to a massif file with its own number. @message (@size bytes)
 * says where it is, or why it failed. */
void session_output_so_far(struct session *s, char *message, size_t size);
/* The same for all sources, without ending them, with @number; messages are logged. */
void session_output_snapshots(struct session *s, unsigned number);

/*
 * Writes @r. @source: inserted into the expanded --massif-out-file, NULL = none. *path_out, owned
 * by the session, is set once the name is known. 0, or -errno after a message, counted in the run.
 */
int session_output_finish_massif(struct session *s, const struct report *r, const char *source,
				 const char **path_out);
/* Writes the file of --xtree-memory at the end, and logs its name. */
void session_output_finish_xtree(struct session *s, uint64_t now_ns);

/* Folded stacks and flame graphs of a session. */

struct source;

/* Writes the files requested by the options for @src: one for each source. */
void path_report_write(struct source *src);

/*
 * --html: the report of a session's recording as a page.
 */

struct recording;

/* Writes and announces the page of @s, which shows @r. Not 0 after a message. */
int html_run_write(struct session *s, const struct recording *r);

/*
 * What ptmem reports besides the massif file: live blocks and leaks, folded stacks, flame graphs.
 *
 *	final scan    threads are stopped: registers and memory are scanned (--leak-check)
 *	finish        the profile is complete: reports are made and written
 *	SIGUSR1       leaks and --inspect, at once; the program continues
 */

struct run;

/*
 * Writes all reports of a finished profile; of drafts only --folded and --flame. @time_ns: its end.
 */
void reports_finish(struct session *s, uint64_t time_ns);

/* Called between events: makes the reports requested by SIGUSR1. */
void reports_poll(struct run *run);

/* The exit status required by --error-exitcode; 0 = none. */
int reports_exit_code(const struct run *run);

#endif
