/* The event loop. */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_RUN_H
#define PTMEM_TRACEE_CONTROL_TARGET_RUN_H

#include "tracee/control/target.h"

/* Runs until no process is left, or the sink's poll returns true. */
void target_run(struct target *t);

/* Makes a running target_run call poll soon; async-signal-safe. */
void target_wake(void);

#endif
