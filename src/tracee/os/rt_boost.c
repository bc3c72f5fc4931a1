/*
 * Uses the lowest real-time priority for a moment. Without the privilege nothing changes: ptmem
 * then competes with the threads that it has resumed.
 */
#include "tracee/os/rt_boost.h"

#include <sched.h>

void rt_boost_begin(struct rt_boost *b)
{
	struct sched_param before = {0};
	const struct sched_param now = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	*b = (struct rt_boost){.policy = sched_getscheduler(0)};
	if ((b->policy != SCHED_OTHER && b->policy != SCHED_BATCH) ||
	    sched_getparam(0, &before) != 0)
		return;
	b->priority = before.sched_priority;
	b->is_on = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &now) == 0;
}

void rt_boost_end(struct rt_boost *b)
{
	const struct sched_param before = {.sched_priority = b->priority};
	if (b->is_on)
		sched_setscheduler(0, b->policy, &before);
	b->is_on = false;
}
