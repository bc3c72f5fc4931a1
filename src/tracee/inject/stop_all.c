/* Handles one stop at a time; stops that were seen during other work come first. */
#include "tracee/inject/stop_all.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

/* @rc: the result of taking @stop. */
static int serve_now(struct target *t, int rc, struct wait_report stop)
{
	if (rc != 0)
		return rc;
	t->now_ns = clock_now_ns();
	t->hooks.serve_stop(t, stop.tid, stop.status);
	return 0;
}

int stops_serve_next(struct target *t, bool no_wait)
{
	struct wait_report stop = {0};
	int rc = 0;
	if (!pending_stops_take_deferred(&t->pending, &stop))
		rc = wait_peek(0, no_wait, &stop);
	return serve_now(t, rc, stop);
}

/*
 * Handles the stop of @th, which may be gone afterwards. -EAGAIN: it is running; -ECHILD: it is not
 * ours.
 */
static int stops_serve_thread(struct target *t, struct thread *th)
{
	struct wait_report stop = {0};
	int rc = wait_peek(th->tid, true, &stop);
	return serve_now(t, rc, stop);
}

/*
 * All threads of all processes at once: stopped, so that none runs while ptmem changes code, and
 * resumed. Stops that occur meanwhile are handled as usual, but a thread is held instead of being
 * resumed (thread_resume).
 */

/*
 * A thread that waits in vfork cannot be interrupted, and its child does not continue while we
 * wait: it counts as halted, since it stops (vfork done) before it runs again.
 */
static bool is_halted(const struct thread *th)
{
	return th->is_held || th->is_exiting || th->vfork.is_waiting;
}

static size_t interrupt_all(struct target *t)
{
	size_t waiting = 0;
	struct thread *th;
	for_each_thread(t, th) {
		if (is_halted(th))
			continue;
		waiting++;
		if (th->was_interrupted || th->state == THREAD_NEW)
			continue;
		if (thread_interrupt(t, th) == 0)
			th->was_interrupted = true;
	}
	return waiting;
}

/* Leaders that were killed: they are reported after their threads, which may be waiting for us. */
static void find_dead(struct target *t)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (!is_halted(th) && proc_is_zombie(th->tid))
			th->is_exiting = true;
	}
}

/*
 * @th is not traced any more: the thread that executed a program has the id of the process's first
 * thread now, and stops at the new image. If that thread was not traced (target.c), there is none
 * to wait for.
 */
static void find_heir(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	struct thread *leader = thread_find(t, p->pid);
	if (leader == th || (leader && leader->is_held)) {
		th->is_exiting = true;
		return;
	}
	if (!leader)
		leader = thread_add(t, p->pid, p);
	log_debug("thread %d has the id of the first, %d, since it executed a program", th->tid,
		  p->pid);
	thread_remove(t, th);
	leader->is_exiting = false;
	leader->is_held = false;
	leader->state = THREAD_RUNNING;
}

/*
 * Polls each thread: a wait for any thread makes the kernel search all of them, for each of
 * thousands. Returns whether there was a stop.
 */
static bool serve_each(struct target *t)
{
	bool has_served = false;
	struct thread *th;
	for_each_thread(t, th) {
		int rc = !is_halted(th) ? stops_serve_thread(t, th) : -EAGAIN;
		has_served |= rc == 0;
		if (rc == -ECHILD)
			find_heir(t, th);
	}
	return has_served;
}

void stop_all(struct target *t)
{
	if (!t->is_stopping)
		t->stopped_since_ns = clock_now_ns();
	t->is_stopping = true;
	while (interrupt_all(t) > 0) {
		if (serve_each(t))
			continue;
		int rc = stops_serve_next(t, true);
		if (rc == -ECHILD)
			break;
		if (rc == -EAGAIN && !wait_for_child(5))
			find_dead(t);
	}
}

void stop_all_note(struct target *t, uint32_t only, uint64_t end_ns)
{
	if (!t->stopped_since_ns)
		return;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct process *p = t->processes.data[i];
		bool is_first = true; /* of those that share the space */
		for (size_t k = 0; k < i; k++)
			is_first &= t->processes.data[k]->space != p->space;
		if (is_first && (!only || only == p->space->id))
			space_note_stop(p->space, end_ns - t->stopped_since_ns);
	}
}

void resume_all(struct target *t)
{
	t->is_stopping = false;
	stop_all_note(t, 0, clock_now_ns());
	t->stopped_since_ns = 0;
	struct thread *th;
	for_each_thread(t, th) {
		if (!th->is_held || th->stays_held)
			continue;
		int sig = th->held_signal;
		th->held_signal = 0;
		if (th->state == THREAD_LISTENING) {
			th->is_held = false;
			ptrace_listen(th->tid);
		} else {
			thread_resume(t, th, sig);
		}
	}
}

/* -- pending breakpoint signals -- */

/* Whether it is just after a breakpoint of ours whose signal is pending. */
static bool waits_for_trap(struct target *t, struct address_space *s, const struct thread *th)
{
	struct arch_regs regs;
	return th->process->space == s && th->is_held && ptrace_get_regs(th->tid, &regs) == 0 &&
	       space_trap_find(s, regs.word[t->arch->pc] - t->arch->trap_pc_offset) &&
	       ptrace_has_pending_trap(th->tid);
}

/*
 * Lets @th run to its next stop. Consumes the stop only after setting the pc: if ptmem dies before,
 * the signal is still delivered, and the SIGTRAP handler does the same. -ECHILD: it is gone.
 */
static int serve_next_stop(struct target *t, struct thread *th)
{
	int rc = thread_continue(t, th, 0, false);
	while (rc == 0 && (rc = stops_serve_thread(t, th)) == -EAGAIN) {
		rc = thread_wait_for_news(th) ? 0 : -ECHILD;
	}
	return rc;
}

void stop_all_serve_traps(struct target *t, struct address_space *s)
{
	enum { MAX_STOPS = 16 };
	uint32_t id = s->id;
	struct thread *th;
	for_each_thread(t, th) {
		for (unsigned n = 0; th && n < MAX_STOPS && waits_for_trap(t, s, th); n++) {
			pid_t tid = th->tid;
			if (serve_next_stop(t, th) != 0)
				break;
			if (!space_exists(t, id))
				return;
			th = thread_find(t, tid);
		}
	}
}
