/*
 * Attaching to a running process: whether it is possible and if not why, the attach itself, and
 * the guardian's undoing of it after ptmem's death.
 */
#ifndef PTMEM_TRACEE_CONTROL_ATTACH_H
#define PTMEM_TRACEE_CONTROL_ATTACH_H

#include "arch/arch.h"
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

/*
 * Whether a process can be attached to, and if not why, before it is touched.
 */

/* The guardian's work after ptmem's death. */

struct journal;

/*
 * Undoes the changes recorded in @journals (JOURNALS of them). The calling process must exit
 * afterwards.
 */
void cleanup_run(struct journal *journals);
/* Nothing that @s or its journal, if any, has of changes is in the program that it runs now. */
void cleanup_forget(struct address_space *s);

#endif
