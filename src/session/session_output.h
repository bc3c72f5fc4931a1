/*
 * What a session writes: the massif file and xtree, folded stacks and flame graphs, the page of
 * --html; and when the reports of leaks, paths and --inspect are made.
 */
#ifndef PTMEM_SESSION_SESSION_OUTPUT_H
#define PTMEM_SESSION_SESSION_OUTPUT_H

#include "base/types.h"
#include "output/report.h"
#include "session/memory_source.h"

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

/* Write the files of the end: out_write. @r: of @kind. */
int session_output_finish_massif(struct session *s, enum memory_source_kind kind,
				 const struct report *r, const char **path_out);
void session_output_finish_xtree(struct session *s);

/* Writes the folded stacks and flame graphs of a source that are wanted. */
struct source;
void path_report_write(struct source *src);

/* Writes the page of --html, which shows @r, a recording as it was built; changes @r. */
struct recording;
void session_output_page(struct session *s, struct recording *r);

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

/*
 * Called between events: makes the reports requested by SIGUSR1, or due at the end of --cold's
 * time. @is_leaving: ptmem detaches next.
 */
void reports_poll(struct run *run, bool is_leaving);

/* For event_sink: the memory of the program is about to be scanned, and is for the last time. */
struct address_space;
void reports_prepare_scan(void *ctx, uint32_t only);
void reports_final_scan(void *ctx, struct address_space *space);

#endif
