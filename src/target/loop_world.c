/*
 * All threads of all processes at once: stopped, so that nobody runs while ptmem changes
 * what they run through, and sent on. Stops that come meanwhile are served as ever; a
 * thread is held then where it would go on (thread_resume).
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/proc.h"
#include "target/ptrace.h"
#include "target/thread.h"

/*
 * One that waits in vfork cannot be interrupted, and its child does not go on while we
 * wait: it counts as halted, since it stops (vfork done) before it runs again.
 */
static bool is_halted(const struct thread *th)
{
	return th->is_held || th->is_exiting || th->waits_for_room || th->is_in_vfork;
}

static size_t interrupt_all(struct target *t)
{
	size_t waiting = 0;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || is_halted(th))
			continue;
		waiting++;
		if (th->was_interrupted || th->state == THREAD_NEW)
			continue;
		if (ptrace_interrupt(th->tid) == 0)
			th->was_interrupted = true;
	}
	return waiting;
}

bool loop_wait_for_child(unsigned ms)
{
	const struct timespec pause = {0, ms * 1000000l};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, NULL, &pause) == SIGCHLD;
}

/* Leaders that were killed: they are told behind their threads, who may wait for us. */
static void find_dead(struct target *t)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && !is_halted(th) && proc_is_dead(th->tid))
			th->is_exiting = true;
	}
}

/*
 * Whose stop is there is asked of each: to a wait for any the kernel answers after a look at all
 * of them, and that for each of thousands. Whether there was one.
 */
static bool serve_each(struct target *t)
{
	bool has_served = false;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && !is_halted(th))
			has_served |= loop_step_thread(t, th) == 0;
	}
	return has_served;
}

void loop_stop_world(struct target *t)
{
	t->is_stopping = true;
	while (interrupt_all(t) > 0) {
		if (serve_each(t))
			continue;
		int rc = loop_step(t, true);
		if (rc == -ECHILD)
			break;
		if (rc == -EAGAIN && !loop_wait_for_child(5))
			find_dead(t);
	}
}

void loop_start_world(struct target *t)
{
	t->is_stopping = false;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || !th->is_held || th->stays)
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

/* -- breakpoints whose signals are still to come -- */

/* Whether a SIGTRAP of its own waits for @tid. */
static bool has_pending_trap(pid_t tid)
{
	struct proc_status st;
	return proc_status_read(tid, &st) == 0 && st.pending >> (SIGTRAP - 1) & 1;
}

/* Whether it stands just behind a breakpoint of ours whose signal is still to come. */
static bool waits_for_trap(struct target *t, struct space *s, const struct thread *th)
{
	struct arch_regs regs;
	return th->process->space == s && th->is_held && ptrace_get_regs(th->tid, &regs) == 0 &&
	       space_trap_find(s, regs.word[t->arch->pc] - t->arch->trap_pc_offset) &&
	       has_pending_trap(th->tid);
}

/* Lets @th run to its next stop. That is consumed only when the pc is set: if ptmem dies before, the
 * signal still comes, and the guard's handler does the same. -ECHILD: it is gone. */
static int serve_next_stop(struct target *t, struct thread *th)
{
	int rc = ptrace_cont(th->tid, 0);
	while (rc == 0 && (rc = loop_step_thread(t, th)) == -EAGAIN) {
		if (!loop_wait_for_child(5) && proc_is_dead(th->tid)) {
			th->is_exiting = true;
			return -ECHILD;
		}
		rc = 0;
	}
	return rc;
}

void loop_take_traps(struct target *t, struct space *s)
{
	enum { MAX_STOPS = 16 };
	uint32_t id = s->id;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		for (unsigned n = 0; th && n < MAX_STOPS && waits_for_trap(t, s, th); n++) {
			pid_t tid = th->tid;
			if (serve_next_stop(t, th) != 0)
				break;
			if (!target_has_space(t, id))
				return;
			th = thread_find(t, tid);
			if (!th)
				i = (size_t)-1; /* the table closed a gap: look again */
		}
	}
}
