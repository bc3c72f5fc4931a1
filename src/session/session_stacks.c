/*
 * The end of a process is not the end of its stacks: Massif takes no snapshot then, so threads that
 * end with it are only removed from the table. A thread that ends by itself removes its bytes from
 * the profile.
 */
#include "session/session.h"

#include "session/memusage_run.h"

void session_stacks_init(struct session *s)
{
	s->stack_use = options_profile_stacks(s->run->options) ? stacks_new() : NULL;
}

/* Reports the sum of all stacks to the profile if it has changed. */
static void update(struct session *s, uint64_t time_ns, uint32_t thread)
{
	struct event ev = {
		.time_ns = time_ns,
		.thread = thread,
		.kind = EVENT_STACK,
		.size = stacks_bytes(s->stack_use),
	};
	if (ev.size == profile_stacks(s->heap.profile))
		return;
	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), &ev);
	profile_event(s->heap.profile, &ev);
}

void session_stacks_see(struct session *s, const struct heap_event *he)
{
	/*
	 * whether a free inside another call is seen depends on the kind of probe; the outer call
	 * always is
	 */
	if (!s->stack_use || !he->sp || he->is_inner)
		return;
	stacks_see(s->stack_use, he->thread, he->sp);
	update(s, he->time_ns, he->thread);
}

void session_stacks_thread_exit(struct session *s, uint32_t thread)
{
	if (s->stack_use)
		stacks_remove(s->stack_use, thread);
}

static void count_event(struct session *s, const struct event *ev)
{
	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), ev);
	memusage_run_event(s, ev);
}

/* memusage records the base of the first thread before any call, of others at their first call. */
static void count_range(struct session *s, const struct thread_stack_info *info)
{
	struct event ev = {
		.time_ns = clock_now_ns(),
		.thread = (uint32_t)info->tid,
		.kind = EVENT_STACK_RANGE,
		.addr = info->low,
		.size = info->high - info->low,
	};
	count_event(s, &ev);
	if (ev.thread != s->process.pid)
		return;
	ev.kind = EVENT_STACK_BASE;
	ev.sp = info->high;
	count_event(s, &ev);
}

void session_stacks_new(void *ctx, struct address_space *space,
			const struct thread_stack_info *info)
{
	struct session *s = space->sink.user;

	(void)ctx;
	if (s->memusage.counts)
		count_range(s, info);
	if (!s->stack_use)
		return;
	stacks_add(s->stack_use, (uint32_t)info->tid, info->low, info->high);
	stacks_see(s->stack_use, (uint32_t)info->tid, info->sp);
	update(s, clock_now_ns(), (uint32_t)info->tid);
}

void session_stacks_gone(void *ctx, struct address_space *space, pid_t tid)
{
	struct session *s = space->sink.user;

	(void)ctx;
	if (!s->stack_use)
		return;
	stacks_remove(s->stack_use, (uint32_t)tid);
	update(s, clock_now_ns(), (uint32_t)tid);
}
