/* See resident_sample.h. */
#include "session/resident_sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "session/session.h"

void resident_sample(struct session *s, uint64_t now_ns)
{
	/* a process that has ended would have 0 */
	_cleanup_fclose_ FILE *f = s->space ? proc_open((pid_t)s->process.pid, "statm") : NULL;
	uint64_t size, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!f || fscanf(f, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return;
	const struct event ev = {
		.time_ns = now_ns,
		.thread = s->process.pid,
		.kind = EVENT_RESIDENT,
		.size = resident * page,
		.align = size * page,
	};

	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), &ev);
	profile_event(s->heap.profile, &ev);
}
