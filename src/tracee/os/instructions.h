/*
 * Hardware counters of executed instructions, one for each seized thread, which includes everything
 * that the thread creates later: the clock of --time-unit=i.
 */
#ifndef PTMEM_TRACEE_OS_INSTRUCTIONS_H
#define PTMEM_TRACEE_OS_INSTRUCTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"

struct instruction_counters {
	VEC(int) fd; /* perf descriptors */
};

/*
 * Whether this user can count instructions on this machine: 0 or -errno of perf_event_open
 * (-ENOENT: no counter).
 */
int instructions_check(void);

/* Counts the instructions of @tid, from its next exec on with @enable_on_exec. 0 or -errno. */
int instructions_add(struct instruction_counters *c, pid_t tid, bool enable_on_exec);

/* The number of instructions executed by all counted threads so far. */
uint64_t instructions_read(const struct instruction_counters *c);
void instructions_close(struct instruction_counters *c);

#endif
