/* Writes the contents of a session's files. */
#ifndef PTMEM_SESSION_OUTPUT_H
#define PTMEM_SESSION_OUTPUT_H

#include "output/writer.h"

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

#endif
