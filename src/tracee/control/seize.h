/* Seizing all threads of a running process. */
#ifndef PTMEM_TRACEE_CONTROL_SEIZE_H
#define PTMEM_TRACEE_CONTROL_SEIZE_H

#include <sys/types.h>

struct target;

/* The ptrace options for seized processes. */
unsigned long seize_options(const struct target *t);
/*
 * Seizes and stops all threads of process @pid. Returns 0 or -errno; -EAGAIN: no thread can work
 * for us now.
 */
int target_seize_all(struct target *t, pid_t pid);

#endif
