/*
 * --inspect of a program while it is profiled: a look at its last stop, or when SIGUSR1 asks for
 * one, which is reported afterwards.
 */
#ifndef PTMEM_INSPECT_FINAL_H
#define PTMEM_INSPECT_FINAL_H

#include "base/types.h"

struct inspect_final;
struct session;

/*
 * Reads the process of @s, whose threads are stopped. @is_last: they do not run on before the
 * process ends or is left.
 */
void inspect_final_look(struct session *s, bool is_last);

/* Reports where the options say what was found last. */
void inspect_final_finish(struct session *s);

void inspect_final_free(struct inspect_final *f); /* NULL is nothing */

#endif
