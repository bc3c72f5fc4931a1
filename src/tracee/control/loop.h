/* The event loop's table: serves one stop. */
#ifndef PTMEM_TRACEE_CONTROL_LOOP_H
#define PTMEM_TRACEE_CONTROL_LOOP_H

#include <sys/types.h>

struct target;

/* Handles a stop or the end of @tid. */
void loop_serve(struct target *t, pid_t tid, int status);

#endif
