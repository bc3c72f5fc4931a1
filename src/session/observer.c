/* Passes events of a run to its observers. */
#include "session/observer.h"

#include "session/run.h"
#include "session/session.h"

void observers_add(struct run *run, const struct observer *o)
{
	*vec_add(&run->observers) = o;
}

void observers_remove(struct run *run, const struct observer *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < run->observers.count; i++) {
		if (run->observers.data[i] != o)
			run->observers.data[kept++] = run->observers.data[i];
	}
	run->observers.count = kept;
}

void observers_session_started(const struct session *s)
{
	for (size_t i = 0; i < s->run->observers.count; i++) {
		const struct observer *o = s->run->observers.data[i];

		if (o->session_started)
			o->session_started(o->ctx, s);
	}
}

void observers_session_forked(const struct session *child)
{
	for (size_t i = 0; i < child->run->observers.count; i++) {
		const struct observer *o = child->run->observers.data[i];

		if (o->session_forked)
			o->session_forked(o->ctx, child);
	}
}

void observers_session_ended(const struct session *s, bool is_exec)
{
	for (size_t i = 0; i < s->run->observers.count; i++) {
		const struct observer *o = s->run->observers.data[i];

		if (o->session_ended)
			o->session_ended(o->ctx, s, is_exec);
	}
}

void observers_session_finished(const struct session *s)
{
	for (size_t i = 0; i < s->run->observers.count; i++) {
		const struct observer *o = s->run->observers.data[i];

		if (o->session_finished)
			o->session_finished(o->ctx, s);
	}
}

void observers_process_exit(const struct run *run, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < run->observers.count; i++) {
		const struct observer *o = run->observers.data[i];

		if (o->process_exit)
			o->process_exit(o->ctx, pid, tid);
	}
}

void observers_will_map(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->observers.count; i++) {
		const struct observer *o = run->observers.data[i];

		if (o->will_map)
			o->will_map(o->ctx, pid);
	}
}

uint64_t observers_tick(const struct run *run, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < run->observers.count; i++) {
		const struct observer *o = run->observers.data[i];

		if (o->tick)
			next = MIN(next, o->tick(o->ctx, now_ns));
	}
	return next;
}

bool observers_poll(const struct run *run)
{
	bool wants_to_leave = false;

	for (size_t i = 0; i < run->observers.count; i++) {
		const struct observer *o = run->observers.data[i];

		if (o->poll)
			wants_to_leave |= o->poll(o->ctx);
	}
	return wants_to_leave;
}

bool observers_monitor(struct session *s, const char *line)
{
	for (size_t i = 0; i < s->run->observers.count; i++) {
		const struct observer *o = s->run->observers.data[i];

		if (o->monitor && o->monitor(o->ctx, s, line))
			return true;
	}
	return false;
}
