/*
 * --inspect of a program while it is profiled: at its last stop, at SIGUSR1, or by a monitor
 * command; with the call paths whose blocks pin nearly empty pages.
 */
#ifndef PTMEM_SESSION_INSPECT_INSPECT_SESSION_H
#define PTMEM_SESSION_INSPECT_INSPECT_SESSION_H

#include <stdio.h>

#include "base/types.h"
#include "session/inspect/inspection.h"

struct session;

/*
 * Reports the memory of the process of @s: to @path (JSON if it ends in .json), or as text to @file
 * if @path is NULL. Call it only while events are polled. -ESRCH and -ENOTSUP (unsupported malloc)
 * are explained in @file; another -errno: @path cannot be written.
 */
int inspect_session_write(struct session *s, const char *path, FILE *file);

/*
 * Reports it to the file of --inspect-out, numbered by @number, or says why not. Call it only while
 * events are polled.
 */
void inspect_session_save(struct session *s, unsigned number);

/*
 * Makes the heap graph of the process as it is now, which the session keeps (last_inspection.h).
 * Says in @file why it cannot. 0, or -errno as above.
 */
int inspect_session_keep_graph(struct session *s, FILE *file);

/*
 * Compares the live blocks of the profile with the blocks in use in the heaps, and prints the
 * differences to @file. 0, or -errno as above.
 */
int inspect_session_check(struct session *s, FILE *file);

/*
 * --inspect of a program while it is profiled: its memory is read at its last stop, or when SIGUSR1
 * requests it, and reported afterwards.
 */

/*
 * Reads the process of @s, whose threads are stopped. @is_last: they do not run again before the
 * process ends or is detached.
 */
void inspect_final_read(struct session *s, bool is_last);

/* Names what was read last, and keeps it (last_inspection.h). */
void inspect_final_classify(struct session *s);
/* The same, unless it was done; writes the report to where the options say. */
void inspect_final_finish(struct session *s);

void inspect_final_free(struct inspection *i); /* NULL is ignored */

#endif
