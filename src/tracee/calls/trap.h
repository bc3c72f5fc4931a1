/*
 * Stops at our breakpoints. The module that installs a breakpoint registers its handler in struct
 * trap.
 */
#ifndef PTMEM_TRACEE_CALLS_TRAP_H
#define PTMEM_TRACEE_CALLS_TRAP_H

#include "tracee/state/space.h"

/* Handles a SIGTRAP of @th. */
enum trap_answer trap_serve(struct target *t, struct thread *th);

#endif
