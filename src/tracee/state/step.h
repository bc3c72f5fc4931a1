/*
 * Single steps that outlive the ptmem that began them.
 */
#ifndef PTMEM_TRACEE_STATE_STEP_H
#define PTMEM_TRACEE_STATE_STEP_H

#include "base/types.h"

struct target;
struct thread;

/*
 * In a guardian: whether @th stopped for a SIGTRAP that ends the last single step of the ptmem that
 * died; the program must not get it. The kernel says TRAP_TRACE, while the step flag is not the
 * program's own; or, where the step led into a signal's handler, the number of the signal
 * (ptrace_notify).
 */
bool step_is_left_over(const struct target *t, const struct thread *th);

#endif
