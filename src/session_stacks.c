/*
 * See session_stacks.h.
 *
 * The end of a process is not the end of its stacks: Massif has no snapshot then, so
 * threads that die with it only leave the table. One that ends by itself takes its bytes
 * out of the profile.
 */
#include "session_stacks.h"

#include "session.h"

static bool is_wanted(const struct options *o)
{
	return o->stacks && (o->pages_as_heap || o->trace & 1u << SOURCE_HEAP);
}

void session_stacks_init(struct session *s)
{
	s->stack_use = is_wanted(s->run->options) ? stacks_new() : NULL;
}

/* Tells the profile what all stacks have now, if that is new. */
static void update(struct session *s, uint64_t time_ns, uint32_t thread)
{
	struct event ev = {
		.time_ns = time_ns,
		.thread = thread,
		.kind = EVENT_STACK,
		.size = stacks_bytes(s->stack_use),
	};
	if (ev.size == profile_stacks(s->profile))
		return;
	if (s->events)
		events_writer_event(s->events, profile_calltree(s->profile), &ev);
	profile_event(s->profile, &ev);
}

void session_stacks_see(struct session *s, const struct heap_event *he)
{
	/*
	 * a free inside another call is seen or not by
	 * the way it is caught; the call itself was seen
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

static void tell_usage(struct session *s, const struct event *ev)
{
	if (s->events)
		events_writer_event(s->events, profile_calltree(s->profile), ev);
	usage_event(s, ev);
}

/* memusage takes the base of the first thread before any call, of others at their first. */
static void tell_range(struct session *s, const struct thread_stack_info *info)
{
	struct event ev = {
		.time_ns = target_clock(),
		.thread = (uint32_t)info->tid,
		.kind = EVENT_STACK_RANGE,
		.addr = info->low,
		.size = info->high - info->low,
	};
	tell_usage(s, &ev);
	if (ev.thread != s->pid)
		return;
	ev.kind = EVENT_STACK_BASE;
	ev.sp = info->high;
	tell_usage(s, &ev);
}

static void on_new(void *ctx, struct space *space, const struct thread_stack_info *info)
{
	struct session *s = space->user;
	(void)ctx;
	if (s->memusage)
		tell_range(s, info);
	if (!s->stack_use)
		return;
	stacks_add(s->stack_use, (uint32_t)info->tid, info->low, info->high);
	stacks_see(s->stack_use, (uint32_t)info->tid, info->sp);
	update(s, target_clock(), (uint32_t)info->tid);
}

static void on_gone(void *ctx, struct space *space, pid_t tid)
{
	struct session *s = space->user;
	(void)ctx;
	if (!s->stack_use)
		return;
	stacks_remove(s->stack_use, (uint32_t)tid);
	update(s, target_clock(), (uint32_t)tid);
}

static bool on_start(void *ctx, struct space *space, struct stack_view *view, taddr_t *sp_out)
{
	struct session *s = space->user;
	(void)ctx;
	return unwind_outermost_sp(s->unwind, view, sp_out);
}

void session_stacks_fill(const struct options *o, struct target_options *to,
			 struct target_sink *sink)
{
	if (!is_wanted(o) && !usage_counts(o))
		return;
	sink->stack_new = on_new;
	sink->stack_gone = on_gone;
	sink->stack_start = on_start;
	if (!is_wanted(o))
		return;
	to->no_probes = o->pages_as_heap; /* calls tell where stacks are, even if none is counted */
	to->stack_pointers = true;
	to->sample_ns = to->sample_ns ? to->sample_ns : o->stack_sample_ms * 1000000ull;
}
