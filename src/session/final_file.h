/*
 * The files that a session writes at its end. If names are fetched then, which takes time, each is
 * written before that, with the names known so far (session_end.is_draft), and replaced afterwards.
 */
#ifndef PTMEM_SESSION_FINAL_FILE_H
#define PTMEM_SESSION_FINAL_FILE_H

#include "base/types.h"

struct result;
struct session;
struct session_file;

/*
 * The name of @file for @s, decided by the first call; *path_out stays the session's. Not 0 after a
 * message.
 */
int final_file_name(struct session *s, const struct session_file *file, const char **path_out);
/* Whether the first call is still to come. */
bool final_file_is_new(const struct session *s, const struct session_file *file);

/*
 * Writes @r to @path, or elsewhere: as rescue_write. A draft is written if that is possible,
 * silently, and not to a place that takes several outputs; the result is 0.
 */
int final_file_write(const struct session *s, const struct result *r, const char *path);

/* Both, for a file that is announced. */
int final_file_put(struct session *s, const struct session_file *file, const struct result *r);

void final_files_deinit(struct session *s);

#endif
