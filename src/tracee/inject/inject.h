/* System calls in the target, made by one of its stopped threads; and steps of such a thread. */
#ifndef PTMEM_TRACEE_INJECT_INJECT_H
#define PTMEM_TRACEE_INJECT_INJECT_H

#include "base/types.h"

struct target;
struct thread;

/* Steps @th, signals held back, until @is_there says so of its pc. -ETIMEDOUT; -ESRCH: it died. */
int inject_step_until(struct target *t, struct thread *th, bool (*is_there)(void *ctx, taddr_t pc),
		      void *ctx,
		      unsigned max_steps);
/* Where a thread continues that hit the breakpoint at @trap; 0 = it is none of those waited for. */
typedef taddr_t inject_find_fn(void *ctx, taddr_t trap);
/*
 * Lets @th run, signals held back, to a breakpoint that @find knows, and sets its pc as that says.
 * It must come to one soon. -ETIMEDOUT: it did not, and was stopped; -ESRCH: it died.
 */
int inject_run_to_trap(struct target *t, struct thread *th, inject_find_fn *find, void *ctx);
/*
 * A stop for SIGTRAP becomes that signal if ptmem dies: brings stopped thread @th to one that does
 * not. A signal that it holds is delivered first, so that it is at its handler's start. -ESRCH:
 * it died of it, or is gone.
 */
int inject_drain_sigtrap(struct target *t, struct thread *th);
/*
 * Runs a system call in stopped thread @th. *result_out: as the kernel returns it (-errno inside).
 * Where the space is guarded, the thread gets its registers back also if ptmem dies meanwhile.
 */
int inject_syscall(struct target *t, struct thread *th, long nr, const uint64_t args[6],
		   int64_t *result_out);
/* The same for mmap of more address space, which target_mapped_bytes() then includes. */
int inject_mmap(struct target *t, struct thread *th, const uint64_t args[6], int64_t *result_out);

#endif
