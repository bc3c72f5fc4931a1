/* The files of a session: their names and what is written into them. */
#ifndef PTMEM_SESSION_OUTPUT_H
#define PTMEM_SESSION_OUTPUT_H

#include "output/writer.h"

struct session;

/* What writers are given, valid as long as @s. */
struct report session_report(struct session *s);

/* The name of @s's file from @pattern, for @option ("--data"). An image that executes the next one
 * of the same name gets its number behind it. *path_out is the caller's; not 0 after a message. */
int session_file_name(struct session *s, const char *option, const char *pattern, char **path_out);

/* Writes the profile, or the xtree, to @path. 0 or -errno. */
int session_write_massif(struct session *s, const char *path);
int session_write_xtree(struct session *s, const char *path, uint64_t now_ns);
/* The state at @now_ns as a file of one snapshot, SNAPSHOT_EMPTY or SNAPSHOT_DETAILED. */
int session_write_now(struct session *s, const char *path, enum snapshot_kind kind,
		      uint64_t now_ns);
/* Writes the profile so far, as a massif file of its own name; says in @message (@size bytes)
 * where, or why not. */
void session_write_so_far(struct session *s, char *message, size_t size);

/* Writes @r; @suffix: behind the expanded --massif-out-file, "" = none. *path_out, the caller's,
 * is set once the name is known. 0 or -errno after a message, counted in the run. */
int session_put_massif(struct session *s, const struct report *r, const char *suffix,
		       char **path_out);
/* The file of --xtree-memory, at the end; says where it is. */
void session_finish_xtree(struct session *s, uint64_t now_ns);

#endif
