/* Single steps that outlive the ptmem that started them. */
#ifndef PTMEM_TRACEE_STATE_STEP_H
#define PTMEM_TRACEE_STATE_STEP_H

#include "base/types.h"

struct target;
struct thread;

/*
 * In a guardian: whether @th stopped for a SIGTRAP that ends the last single step of the dead
 * ptmem, and must be hidden from the program. si_code is TRAP_TRACE without the program's own step
 * flag; or, if the step led into a signal handler, the number of the signal (ptrace_notify).
 */
bool step_is_left_over(const struct target *t, const struct thread *th);

#endif
