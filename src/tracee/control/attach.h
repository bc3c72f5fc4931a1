/* Attaching to a running process. */
#ifndef PTMEM_TRACEE_CONTROL_ATTACH_H
#define PTMEM_TRACEE_CONTROL_ATTACH_H

#include "tracee/control/target.h"

/*
 * Attaches to all threads of @pid. Returns 0, or -errno with *problem_out and *detail_out (a
 * number: the tracer's pid, a thread id). After a failure nothing of ours is left
 * in the process.
 */
int target_attach(struct target *t, pid_t pid, enum attach_problem *problem_out, long *detail_out);

/* The same without waiting for what may pass: one try. */
int target_attach_once(struct target *t, pid_t pid, enum attach_problem *problem_out,
		       long *detail_out);
/* Whether an attach to @pid that failed so may succeed if retried. */
bool target_may_attach_later(pid_t pid, enum attach_problem problem, long detail);

#endif
