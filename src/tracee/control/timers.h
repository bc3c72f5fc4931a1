/* What the loop does at a given time: the sink's tick, samples of threads, job control. */
#ifndef PTMEM_TRACEE_CONTROL_TIMERS_H
#define PTMEM_TRACEE_CONTROL_TIMERS_H

#include <stdint.h>

struct target;
struct timers;

struct timers *timers_new(void); /* all are due at once */
void timers_free(struct timers *timers);

/* When timers_run is to be called next, by target_clock; UINT64_MAX = never. */
uint64_t timers_next(const struct target *t);
/* The loop must not sleep beyond @ns. */
void timers_wake_by(struct target *t, uint64_t ns);
/* Runs what is due by now. */
void timers_run(struct target *t);

#endif
