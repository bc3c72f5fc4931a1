/*
 * Leaving programs: text restored, stubs taken out where nobody is in them, threads let go.
 *
 * All stand still for it. A thread that waits in vfork does not, and can neither be let go
 * nor make calls for us: so the others go on until it came out, at most VFORK_MS; it stays
 * where it is then.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "target/faults.h"
#include "target/guard.h"
#include "target/hurry.h"
#include "target/pads.h"
#include "target/ptrace.h"
#include "target/thread.h"

static void detach_thread(struct thread *th)
{
	/* a group-stopped thread stays stopped; one with a pending signal gets it */
	int rc = ptrace_detach(th->tid, th->held_signal);
	if (rc != 0)
		log_debug("thread %d: detach: %s", th->tid, strerror(-rc));
}

/* Lets everybody run for a moment. */
static void run_shortly(struct target *t)
{
	const struct timespec ts = {0, 1000000};
	loop_start_world(t);
	nanosleep(&ts, NULL);
	while (loop_step(t, true) == 0)
		;
	loop_stop_world(t);
}

/* Whether a thread of @s waits in vfork. */
static bool is_in_vfork(const struct target *t, const struct space *s)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		const struct thread *th = t->threads.data[i];
		if (th && th->process->space == s && th->is_in_vfork)
			return true;
	}
	return false;
}

#define VFORK_MS 2000u
#define REMOVE_TRIES 100
/* It walks no stacks: words that only look like addresses do not go away, however long it waits. */
#define GUARDIAN_TRIES 25

/* Until nobody of @s waits in vfork, at most until @deadline. Who comes out of it stays where it is. */
static void run_out_of_vfork(struct target *t, struct space *s, uint64_t deadline)
{
	loop_start_world(t);
	while (is_in_vfork(t, s) && target_clock() < deadline) {
		if (loop_step(t, true) != 0)
			loop_wait_for_child(5);
	}
	loop_stop_world(t);
}

static bool remove_from(struct target *t, struct space *s, uint64_t deadline, bool is_last)
{
	if (s->areas.count == 0 && s->traps.count == 0 && !guard_has_injection(s))
		return true;
	if (is_in_vfork(t, s) && target_clock() < deadline) {
		run_out_of_vfork(t, s, deadline);
		return false; /* the processes may be others now */
	}
	return install_remove(t, s, thread_pick(t, s), is_last);
}

/* From the spaces of all processes, or of @only. Processes may end meanwhile. */
static void remove_everything(struct target *t, pid_t only)
{
	uint64_t deadline = target_clock() + VFORK_MS * 1000000ull;
	unsigned most = t->is_guardian ? GUARDIAN_TRIES : REMOVE_TRIES;
	bool is_done = false;
	t->is_leaving = true;
	for (unsigned tries = 1; !is_done && tries <= most; tries++) {
		if (tries > 1)
			run_shortly(t);
		is_done = true;
		for (size_t i = 0; i < t->processes.count; i++) {
			const struct process *p = t->processes.data[i];
			if (!only || only == p->pid)
				is_done &= remove_from(t, p->space, deadline, tries == most);
		}
	}
	t->is_leaving = false;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (t->threads.data[i])
			t->threads.data[i]->stays = false;
	}
}

static bool is_among(const struct thread *th, pid_t only)
{
	return th && (!only || th->process->pid == only);
}

/* Lets go of all processes, or of @only. Everybody stands still, but for moments. Returns the time when
 * the last one went on. */
static uint64_t detach_stopped(struct target *t, pid_t only)
{
	struct hurry hurry;
	remove_everything(t, only);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only))
			trap_drop_calls(t, t->threads.data[i], UINT64_MAX);
	}
	hurry_begin(&hurry);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only))
			detach_thread(t->threads.data[i]);
	}
	uint64_t end = target_clock();
	hurry_end(&hurry);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only)) {
			thread_remove(t, t->threads.data[i]);
			i = (size_t)-1;
		}
	}
	return end;
}

static void prepare_look(struct target *t)
{
	if (t->options.last_look)
		target_each(t, t->sink.prepare_look, t->sink.ctx);
}

/* Everybody stands still: all that was recorded is told, and then looked at. */
static void look_at_last(struct target *t)
{
	faults_drain(t);
	target_catch_up(t);
	if (t->options.last_look)
		target_each(t, t->sink.last_look, t->sink.ctx);
}

static void detach_all(struct target *t)
{
	struct hurry hurry;
	prepare_look(t);
	uint64_t begin = target_clock();
	hurry_begin(&hurry);
	loop_stop_world(t);
	hurry_end(&hurry);
	look_at_last(t);
	t->stats.detach_ns = detach_stopped(t, 0) - begin;
	for (size_t i = 0; i < t->early_count; i++)
		ptrace_detach(t->early[i].tid, 0);
	t->early_count = 0;
	t->is_stopping = false;
	while (t->processes.count > 0)
		process_remove(t, t->processes.data[0], SPACE_DETACHED);
}

void target_undo_attach(struct target *t, pid_t pid)
{
	loop_stop_world(t);
	detach_stopped(t, pid);
	struct process *p = process_find(t, pid);
	if (p)
		process_remove(t, p, SPACE_DETACHED);
	loop_start_world(t);
}

/*
 * A program whose calls our filter stops cannot be left: they would fail. So only
 * the profiles end, and ptmem answers those calls until nobody is left.
 */
static void release_all(struct target *t)
{
	t->is_released = true;
	prepare_look(t);
	loop_stop_world(t);
	look_at_last(t);
	remove_everything(t, 0);
	for (size_t i = 0; i < t->processes.count; i++) {
		struct space *s = t->processes.data[i]->space;
		pads_finish(t, s);
		if (s->user)
			t->sink.space_end(t->sink.ctx, s, SPACE_DETACHED);
		pads_free(t, s);
		s->is_profiled = false;
	}
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th)
			continue;
		trap_drop_calls(t, th, UINT64_MAX);
		th->is_held |= th->waits_for_room;
		th->waits_for_room = false;
	}
	t->waiters = 0;
	loop_start_world(t);
}

bool target_must_stay(const struct target *t)
{
	return t->syscalls == SYSCALLS_FILTER && t->processes.count > 0;
}

void target_detach(struct target *t)
{
	t->now_ns = target_clock();
	if (!target_must_stay(t)) {
		detach_all(t);
		return;
	}
	release_all(t);
	while (t->processes.count > 0 && loop_step(t, false) != -ECHILD)
		;
}

void target_abandon(struct target *t)
{
	t->is_abandoned = true;
	loop_stop_world(t);
	for (size_t i = 0; i < t->processes.count; i++)
		install_remove(t, t->processes.data[i]->space, NULL, true);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (t->threads.data[i])
			detach_thread(t->threads.data[i]);
	}
}
