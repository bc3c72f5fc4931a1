/*
 * Detaching: text is restored, stubs that no thread is in are removed, threads are detached. All
 * are stopped for this. A thread that waits in vfork can neither be detached nor make system calls:
 * so the others continue until it leaves vfork, at most VFORK_MS; after that it is left as it is.
 */
#include "tracee/control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/calls.h"
#include "tracee/control/faults.h"
#include "tracee/control/install.h"
#include "tracee/control/job.h"
#include "tracee/control/target.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/own_settings.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define END_MS 30000u /* a killed thread takes seconds to exit on an overloaded machine */

/*
 * @th was killed meanwhile, by the end of another thread for instance, and will stop for its exit.
 * It would stay there and keep its process from ending, since no tracer would resume it.
 */
static void let_end(struct target *t, struct thread *th)
{
	for (unsigned ms = 0; ms < END_MS; ms += 5) {
		/* checked first: the end of a thread that dies after the wait would be missed */
		bool is_dead = proc_is_dead(th->tid);
		int status = 0;
		pid_t got = waitpid(th->tid, &status, __WALL | WNOHANG);
		if (got == 0 && is_dead)
			return; /* a leader that waits for the other threads to end */
		if (got == 0) {
			wait_for_child(5);
			continue;
		}
		if (got == th->tid && WIFSTOPPED(status) && ptrace_detach(th->tid, 0) != 0)
			continue;
		if (got == t->first.pid && !WIFSTOPPED(status)) {
			t->first.has_status = true;
			t->first.status = status;
		}
		return;
	}
}

static void detach_thread(struct target *t, struct thread *th)
{
	/* a group-stopped thread stays stopped; a pending signal is delivered */
	int rc = ptrace_detach(th->tid, th->held_signal);
	if (rc != 0)
		log_debug("thread %d: detach: %s", th->tid, strerror(-rc));
	if (rc == -ESRCH && !th->vfork.is_waiting)
		let_end(t, th);
}

#define RUN_MS_MAX 100
#define REMOVE_TRIES 100
/* Does not walk stacks: a word that only looks like an address never goes away. */
#define GUARDIAN_TRIES 25

/*
 * Lets all threads run for a moment, longer at each try: on a busy machine they may not get a CPU
 * at once, and their stacks do not change. Their stops are served meanwhile: a program that
 * single-steps itself has one at each instruction.
 */
static void run_shortly(struct target *t, unsigned tries)
{
	unsigned ms = (tries - 1) * (t->recovery.is_guardian ? REMOVE_TRIES / GUARDIAN_TRIES : 1);
	uint64_t deadline = clock_now_ns() + MIN(ms, RUN_MS_MAX) * 1000000ull;
	resume_all(t);
	do {
		if (stops_serve_next(t, true) != 0)
			wait_for_child(1);
	} while (clock_now_ns() < deadline);
	stop_all(t);
}

/* Whether a thread of @s waits in vfork. */
static bool is_in_vfork(const struct target *t, const struct address_space *s)
{
	const struct thread *th;
	for_each_thread_in(t, s, th) {
		if (th->vfork.is_waiting)
			return true;
	}
	return false;
}

#define VFORK_MS 2000u
/*
 * Waits until no thread of @s is in vfork, at most until @deadline. A thread that leaves it is
 * held.
 */
static void run_out_of_vfork(struct target *t, struct address_space *s, uint64_t deadline)
{
	resume_all(t);
	while (is_in_vfork(t, s) && clock_now_ns() < deadline) {
		if (stops_serve_next(t, true) != 0)
			wait_for_child(5);
	}
	stop_all(t);
}

static bool remove_from(struct target *t, struct address_space *s, uint64_t deadline, bool is_last)
{
	if (s->own.areas.count == 0 && s->traps.count == 0 && !journal_has_injection(s))
		return true;
	if (is_in_vfork(t, s) && clock_now_ns() < deadline) {
		run_out_of_vfork(t, s, deadline);
		return false; /* the processes may have changed */
	}
	restore_space(t, s);
	return install_remove(t, s, seccomp_pick_thread(t, s), is_last);
}

/* Removes everything from all spaces, or from number @only. Processes may end meanwhile. */
static void remove_everything(struct target *t, uint32_t only)
{
	uint64_t deadline = clock_now_ns() + VFORK_MS * 1000000ull;
	unsigned most = t->recovery.is_guardian ? GUARDIAN_TRIES : REMOVE_TRIES;
	bool is_done = false;
	t->is_leaving = true;
	for (unsigned tries = 1; !is_done && tries <= most; tries++) {
		if (tries > 1)
			run_shortly(t, tries);
		is_done = true;
		for (size_t i = 0; i < t->processes.count; i++) {
			struct address_space *s = t->processes.data[i]->space;
			if (!only || only == s->id)
				is_done &= remove_from(t, s, deadline, tries == most);
		}
	}
	t->is_leaving = false;
	struct thread *th;
	for_each_thread(t, th)
		th->stays_held = false;
}

static bool is_among(const struct thread *th, uint32_t only)
{
	return !only || th->process->space->id == only;
}

/*
 * Detaches from all processes, or from those of space @only. All threads are stopped except for
 * moments. Returns the time when the last one was resumed.
 */
static uint64_t detach_stopped(struct target *t, uint32_t only)
{
	struct rt_boost boost;
	struct thread *th;
	remove_everything(t, only);
	for_each_thread(t, th) {
		if (is_among(th, only))
			call_drop(t, th, UINT64_MAX);
	}
	rt_boost_begin(&boost);
	for_each_thread(t, th) {
		if (is_among(th, only))
			detach_thread(t, th);
	}
	uint64_t end = clock_now_ns();
	rt_boost_end(&boost);
	stop_all_note(t, only, end);
	for_each_thread(t, th) {
		if (is_among(th, only))
			thread_remove(t, th);
	}
	return end;
}

static void prepare_final_scan(struct target *t)
{
	if (t->options.watch.final_scan)
		t->sink.prepare_final_scan(t->sink.ctx, 0);
}

/* All threads are stopped: delivers all records, then checks the memory. */
static void run_final_scan(struct target *t)
{
	faults_drain(t);
	target_catch_up(t);
	if (t->options.watch.final_scan)
		target_each(t, t->sink.final_scan, t->sink.ctx);
}

static void detach_all(struct target *t)
{
	struct rt_boost boost;
	prepare_final_scan(t);
	uint64_t begin = clock_now_ns();
	rt_boost_begin(&boost);
	stop_all(t);
	rt_boost_end(&boost);
	run_final_scan(t);
	uint64_t now = detach_stopped(t, 0);

	t->stats.detach_ns = now - begin;
	for (size_t i = 0; i < t->processes.count; i++)
		t->processes.data[i]->space->pauses.left_ns = now;
	for (size_t i = 0; i < t->pending.unannounced.count; i++)
		ptrace_detach(t->pending.unannounced.data[i].tid, 0);
	t->pending.unannounced.count = 0;
	t->is_stopping = false;
	t->stopped_since_ns = 0;
	while (t->processes.count > 0)
		process_remove(t, t->processes.data[0], SPACE_DETACHED);
}

/* Detaches permanently from the processes of space @id. All threads are stopped. */
static void leave_space(struct target *t, uint32_t id)
{
	detach_stopped(t, id);
	for (size_t i = 0; i < t->processes.count;) {
		struct process *p = t->processes.data[i];
		if (p->space->id == id)
			process_remove(t, p, SPACE_DETACHED);
		else
			i++;
	}
}

void target_detach_process(struct target *t, pid_t pid)
{
	const struct process *p = process_find(t, pid);

	if (p && t->options.watch.final_scan)
		t->sink.prepare_final_scan(t->sink.ctx, p->space->id);
	stop_all(t);
	faults_drain(t);
	target_catch_up(t);
	p = process_find(t, pid);
	if (p && t->options.watch.final_scan)
		t->sink.final_scan(t->sink.ctx, p->space);
	if (p)
		leave_space(t, p->space->id);
	resume_all(t);
}

void target_undo_attach(struct target *t, pid_t pid)
{
	stop_all(t);
	const struct process *p = process_find(t, pid);
	if (p)
		leave_space(t, p->space->id);
	resume_all(t);
}

/* Ends the profile of @s, which has no probes any more; its processes are still traced. */
static void end_profile(struct target *t, struct address_space *s)
{
	pads_finish(t, s);
	stop_all_note(t, s->id, clock_now_ns());
	if (s->sink.user)
		t->sink.space_end(t->sink.ctx, s, SPACE_DETACHED);
	pads_free(t, s);
	s->watch.is_profiled = false;
	struct thread *th;
	for_each_thread_in(t, s, th) {
		call_drop(t, th, UINT64_MAX);
	}
}

/*
 * A program whose system calls stop at our filter cannot be detached: the calls would fail. So only
 * the profiles end, and ptmem resumes these calls until no process is left.
 */
static void release_all(struct target *t)
{
	prepare_final_scan(t);
	t->is_released = true;
	stop_all(t);
	run_final_scan(t);
	remove_everything(t, 0);
	for (size_t i = 0; i < t->processes.count; i++) {
		end_profile(t, t->processes.data[i]->space);
		t->sink.process_left(t->sink.ctx, t->processes.data[i]->pid, SPACE_DETACHED);
	}
	resume_all(t);
}

/* The space whose shared memory the program corrupted, or NULL. */
static struct address_space *find_corrupt(const struct target *t)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (pads_are_corrupt(t->processes.data[i]->space))
			return t->processes.data[i]->space;
	}
	return NULL;
}

void target_leave_corrupt(struct target *t)
{
	struct address_space *s = find_corrupt(t);
	if (!s)
		return;
	uint32_t id = s->id;
	stop_all(t);
	if (t->syscalls.way != SYSCALLS_FILTER) {
		leave_space(t, id);
	} else {
		remove_everything(t, id);
		if (space_exists(t, id))
			end_profile(t, s);
	}
	resume_all(t);
}

bool target_must_stay(const struct target *t)
{
	return t->syscalls.way == SYSCALLS_FILTER && t->processes.count > 0;
}

void target_detach(struct target *t)
{
	t->now_ns = clock_now_ns();
	if (!target_must_stay(t)) {
		detach_all(t);
		return;
	}
	release_all(t);
	standby_free(t); /* there are no rings any more */
	while (t->processes.count > 0 && stops_serve_next(t, false) != -ECHILD)
		job_follow(t);
}

void target_abandon(struct target *t)
{
	t->is_abandoned = true;
	stop_all(t);
	for (size_t i = 0; i < t->processes.count; i++)
		install_remove(t, t->processes.data[i]->space, NULL, true);
	struct thread *th;
	for_each_thread(t, th)
		detach_thread(t, th);
}
