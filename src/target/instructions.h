/*
 * The hardware's counters of executed instructions, one for each thread that was
 * seized, each with all that its thread makes later: the clock of --time-unit=i.
 * Internal to src/target but for target_instructions() and instructions_check().
 */
#ifndef PTMEM_TARGET_INSTRUCTIONS_H
#define PTMEM_TARGET_INSTRUCTIONS_H

#include <stdbool.h>
#include <sys/types.h>

struct target;

/*
 * Whether this machine counts for this user: 0 or -errno of perf_event_open (-ENOENT: no counter).
 */
int instructions_check(void);

/* Counts the instructions of @tid, from its next exec on with @enable_on_exec. 0 or -errno. */
int instructions_add(struct target *t, pid_t tid, bool enable_on_exec);

void instructions_close(struct target *t);

#endif
