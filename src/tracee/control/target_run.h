/* The event loop. */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_RUN_H
#define PTMEM_TRACEE_CONTROL_TARGET_RUN_H

#include "tracee/control/target.h"

/* Runs until no process is left, or the sink's poll says to leave. */
void target_run(struct target *t);

/* Asks a running target_run to call poll soon; safe in a signal handler. */
void target_wake(void);

#endif
