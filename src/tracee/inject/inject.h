/*
 * System calls in the target, made by one of its stopped threads, and single steps of such a
 * thread.
 */
#ifndef PTMEM_TRACEE_INJECT_INJECT_H
#define PTMEM_TRACEE_INJECT_INJECT_H

#include "base/types.h"

struct address_space;
struct maps;
struct target;
struct thread;

/* Steps @th, signals held back, until @is_there accepts its pc. -ETIMEDOUT; -ESRCH: it died. */
int inject_step_until(struct target *t, struct thread *th, bool (*is_there)(void *ctx, taddr_t pc),
		      void *ctx,
		      unsigned max_steps);
/*
 * Steps @th likewise until it is at @pc. -EAGAIN: it is at a system call, in which it may wait, or
 * in an instruction that repeats itself, which may take long: neither is stepped. Adds its steps to
 * *steps.
 */
int inject_step_to(struct target *t, struct thread *th, taddr_t pc, unsigned max_steps,
		   uint32_t *steps);
/*
 * The address at which a thread continues that hit the breakpoint at @trap; 0 = not one of those
 * waited for.
 */
typedef taddr_t inject_find_fn(void *ctx, taddr_t trap);
/*
 * Lets @th run, signals held back, to a breakpoint that @find knows, and sets its pc accordingly.
 * It must reach one soon. -ETIMEDOUT: it did not, and was stopped; -ESRCH: it died.
 */
int inject_run_to_trap(struct target *t, struct thread *th, inject_find_fn *find, void *ctx);
/*
 * A stop for SIGTRAP delivers that signal if ptmem dies: moves the stopped thread @th to a stop
 * that does not. A held signal is delivered first, so that the thread is at its handler's start.
 * -ESRCH: it died of the signal, or is gone.
 */
int inject_drain_sigtrap(struct target *t, struct thread *th);
/*
 * Makes a system call in stopped thread @th. *result_out: the kernel's result (-errno included). If
 * the space is guarded, the thread's registers are restored even if ptmem dies meanwhile.
 */
int inject_syscall(struct target *t, struct thread *th, long nr, const uint64_t args[6],
		   int64_t *result_out);
/*
 * The same for an mmap that adds address space, which target_mapped_bytes() then includes. With the
 * address 0 it is put far from other maps.
 */
int inject_mmap(struct target *t, struct thread *th, const uint64_t args[6], int64_t *result_out);
/* Notes such a place in the maps of @s, which are read again for it otherwise. */
void inject_plan_mmap(struct address_space *s, const struct maps *maps);

/* System calls that a mere stop interrupts. */

/* Makes @th repeat the call that failed with -EINTR because of our stop. */
void inject_restart_interrupted(struct target *t, struct thread *th);
/*
 * @th has stopped for @sig, which it is to get. If it ignores that, it repeats a call without a
 * timeout that failed because of it; if it handles it, it repeats none that it has not begun again.
 */
void inject_note_signal(struct target *t, struct thread *th, int sig);

#endif
