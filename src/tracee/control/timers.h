/* Timed work of the loop: the sink's tick, samples of threads, job control. */
#ifndef PTMEM_TRACEE_CONTROL_TIMERS_H
#define PTMEM_TRACEE_CONTROL_TIMERS_H

#include <stdint.h>

struct target;
struct timers;

struct timers *timers_new(void); /* Makes all of them due at once; the caller frees them. */

/* The time (clock_now_ns) of the next call of timers_run; UINT64_MAX = never. */
uint64_t timers_next(const struct target *t);
/* The loop must wake up by @ns. */
void timers_wake_by(struct target *t, uint64_t ns);
/* timers_run shall be called by @ns. */
void timers_run_by(struct target *t, uint64_t ns);
/* The next tick of the sink is no later than @ns. */
void timers_tick_by(struct target *t, uint64_t ns);
/* Runs everything that is due. */
void timers_run(struct target *t);

#endif
