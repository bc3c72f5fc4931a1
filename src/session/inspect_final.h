/*
 * --inspect of a program while it is profiled: its memory is read at its last stop, or when SIGUSR1
 * requests it, and reported afterwards.
 */
#ifndef PTMEM_INSPECT_FINAL_H
#define PTMEM_INSPECT_FINAL_H

#include "base/types.h"

struct inspect_final;
struct session;

/*
 * Reads the process of @s, whose threads are stopped. @is_last: they do not run again before the
 * process ends or is detached.
 */
void inspect_final_read(struct session *s, bool is_last);

/* Names what was read last, and keeps it (inspect_kept.h). */
void inspect_final_classify(struct session *s);
/* The same, unless it was done; writes the report to where the options say. */
void inspect_final_finish(struct session *s);

void inspect_final_free(struct inspect_final *f); /* NULL is ignored */

#endif
