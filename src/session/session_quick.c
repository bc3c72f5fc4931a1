/*
 * The short path for plain allocations and frees recorded by pads: from the ring to the profile and
 * to memusage's numbers, in batches. Outputs that need complete events (an event file, an xtree)
 * use the long path.
 */
#include "session/session_quick.h"

#include "profile/memusage.h"
#include "profile/profile_quick.h"
#include "session/session.h"

bool session_wants_quick(const struct session *s)
{
	const struct options *o = s->run->options;
	return !s->heap.sample.interval && !s->events.writer && !s->heap.flows &&
	       !s->heap.releases && !s->stack_use && !o->messages.trace_malloc &&
	       (o->profile.heap || s->memusage.counts);
}

void session_quick(struct session *s, const struct quick_event *ev, size_t count)
{
	if (s->memusage.counts)
		memusage_quick(s->memusage.counts, ev, count);
	if (!s->run->options->profile.heap)
		return;
	uint64_t stacks = 0;
	for (size_t i = 0; i < count; i++)
		stacks += !ev[i].is_free;
	s->stacks.counts.taken += stacks;
	s->stacks.counts.complete += stacks;
	s->stacks.counts.ends[UNWIND_COMPLETE] += stacks;
	profile_quick(s->heap.profile, ev, count);
}
