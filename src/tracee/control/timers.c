/* A few timers; the loop sleeps until the earliest. */
#include "tracee/control/timers.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/types.h"
#include "tracee/control/control.h"
#include "tracee/control/thread_stacks.h"
#include "tracee/pads/pads.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define NS_PER_THREAD 100000u /* a sample takes some 10 us: a tenth of the time at most */

struct timers {
	uint64_t next_ns;               /* the earliest */
	uint64_t tick_ns, sample_ns;    /* the sink's tick, the next samples */
	uint64_t wake_ns;               /* the last argument of timers_wake_by */
};

struct timers *timers_new(void)
{
	return xcalloc(1, sizeof(struct timers));
}

uint64_t timers_next(const struct target *t)
{
	return t->control->timers->next_ns;
}

void timers_wake_by(struct target *t, uint64_t ns)
{
	t->control->timers->wake_ns = ns;
	t->control->timers->next_ns = MIN(t->control->timers->next_ns, ns);
}

void timers_run_by(struct target *t, uint64_t ns)
{
	t->control->timers->next_ns = MIN(t->control->timers->next_ns, ns);
}

void timers_tick_by(struct target *t, uint64_t ns)
{
	t->control->timers->tick_ns = MIN(t->control->timers->tick_ns, ns);
	timers_run_by(t, ns);
}

/* A tick sees the events before it: what is in the rings, but not what is added meanwhile. */
static void read_rings(struct target *t)
{
	for (size_t i = 0; i < t->processes.count; i++)
		pads_catch_up(t, t->processes.data[i]->space);
}

void timers_run(struct target *t)
{
	struct timers *timers = t->control->timers;
	uint64_t period = t->options.samples.ns, next;
	t->now_ns = clock_now_ns();
	next = left_children_poll(t, t->now_ns);
	if (period && t->now_ns >= timers->sample_ns) {
		sample_threads(t);
		timers->sample_ns =
			t->now_ns + MAX(period, (uint64_t)thread_count(t) * NS_PER_THREAD);
	}
	if (t->sink.tick && t->now_ns >= timers->tick_ns) {
		read_rings(t);
		timers->tick_ns = t->sink.tick(t->sink.ctx, t->now_ns);
	}
	if (period)
		next = MIN(next, timers->sample_ns);
	if (t->sink.tick)
		next = MIN(next, timers->tick_ns);
	if (timers->wake_ns > t->now_ns)
		next = MIN(next, timers->wake_ns);
	timers->next_ns = next;
}
