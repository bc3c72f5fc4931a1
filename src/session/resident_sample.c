/* See resident_sample.h. */
#include "session/resident_sample.h"

#include "base/proc.h"
#include "session/session.h"

void resident_sample(struct session *s, uint64_t now_ns)
{
	/* a process that has ended would have 0 */
	struct proc_statm m;

	if (!s->space || proc_statm_read((pid_t)s->process.pid, &m) != 0)
		return;
	const struct event ev = {
		.time_ns = now_ns,
		.thread = s->process.pid,
		.kind = EVENT_RESIDENT,
		.size = m.resident,
		.align = m.size,
	};

	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), &ev);
	profile_event(s->heap.profile, &ev);
}
