/*
 * The short way of plain allocations and frees that pads recorded: from the ring to the
 * profile and to memusage's numbers, many at a time. Whatever wants to see every event
 * with all that belongs to it (a file of events, an xtree) keeps to the long way.
 */
#include "session_quick.h"

#include "output/memusage.h"
#include "session.h"

bool session_wants_quick(const struct session *s)
{
	const struct options *o = s->run->options;
	return !s->events && !s->flows && !s->stack_use && !o->trace_malloc &&
	       (o->heap || s->memusage);
}

void session_quick(struct session *s, uint64_t time_ns, const struct quick_event *ev, size_t count)
{
	if (s->memusage)
		memusage_quick(s->memusage, time_ns, ev, count);
	if (!s->run->options->heap)
		return;
	uint64_t stacks = 0;
	for (size_t i = 0; i < count; i++)
		stacks += !ev[i].is_free;
	s->stacks += stacks;
	s->complete_stacks += stacks;
	s->ends[UNWIND_COMPLETE] += stacks;
	profile_quick(s->profile, time_ns, ev, count);
}
