/* Seizing all threads of a running process. */
#ifndef PTMEM_TRACEE_CONTROL_SEIZE_H
#define PTMEM_TRACEE_CONTROL_SEIZE_H

#include <sys/types.h>

struct target;

/* With what options processes are seized. */
unsigned long seize_options(const struct target *t);
/*
 * Seizes and stops all threads of process @pid: 0 or -errno. -EAGAIN: none of them can work for
 * us now.
 */
int target_seize_all(struct target *t, pid_t pid);

#endif
