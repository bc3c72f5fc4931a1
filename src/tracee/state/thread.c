/*
 * Adding and removing, stopping and resuming threads and processes. There are few processes: a list
 * is sufficient.
 */
#include "tracee/state/thread.h"

#include "tracee/os/ptrace.h"
#include "tracee/os/stop.h"
#include "tracee/os/wait.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/target_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/proc.h"

struct thread *thread_find(const struct target *t, pid_t tid)
{
	return thread_table_find(&t->threads, tid);
}

uint32_t thread_count(const struct target *t)
{
	return (uint32_t)thread_table_count(&t->threads);
}

struct thread *thread_add(struct target *t, pid_t tid, struct process *p)
{
	struct thread *th = xcalloc(1, sizeof(*th));
	th->tid = tid;
	th->process = p;
	th->state = THREAD_NEW;
	thread_table_add(&t->threads, th);
	t->stats.threads++;
	p->threads++;
	return th;
}

void thread_remove(struct target *t, struct thread *th)
{
	thread_table_take(&t->threads, th);
	th->process->threads--;
	pending_stops_drop_deferred(&t->pending, th->tid);
	free(th->syscall);
	free(th->pads);
	free(th->resumed);
	call_state_deinit(&th->calls);
	stack_window_deinit(&th->window);
	free(th);
}

struct process *process_find(const struct target *t, pid_t pid)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->pid == pid)
			return t->processes.data[i];
	}
	return NULL;
}

struct process *process_add(struct target *t, pid_t pid, struct address_space *space)
{
	struct process *p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	p->space = space;
	*vec_add(&t->processes) = p;
	t->stats.processes++;
	return p;
}

void process_move_reader(struct target *t, const struct process *leaving)
{
	struct address_space *s = leaving->space;
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] != leaving && t->processes.data[i]->space == s) {
			s->processes.reader = proc_find_reader(t->processes.data[i]->pid);
			if (s->recovery.journal)
				s->recovery.journal->pid = t->processes.data[i]->pid;
			return;
		}
	}
}

bool space_exists(const struct target *t, uint32_t id)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->id == id)
			return true;
	}
	return false;
}

void process_unlink(struct target *t, struct process *p)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] == p) {
			vec_take_swap(&t->processes, i);
			return;
		}
	}
}

void thread_note_stop(struct thread *th, enum stop_kind kind)
{
	th->state = kind == STOP_GROUP ? THREAD_LISTENING : THREAD_STOPPED;
	if (kind == STOP_GROUP || kind == STOP_INTERRUPT)
		th->is_group_stopped = kind == STOP_GROUP;
}

bool thread_must_halt(const struct target *t, const struct thread *th)
{
	return t->is_stopping || th->stays_held;
}

void thread_resume(struct target *t, struct thread *th, int sig)
{
	if (thread_must_halt(t, th)) {
		th->state = THREAD_STOPPED;
		th->is_held = true;
		th->held_signal = sig;
		thread_consume_stop(t, th); /* otherwise the next wait would find it again */
		return;
	}
	thread_run(t, th, sig);
}

/* If @th is killed before it continues, its exit stop is missed: these are its last registers. */
static void keep_registers(struct thread *th)
{
	if (!th->resumed)
		th->resumed = xcalloc(1, sizeof(*th->resumed));
	ptrace_get_regs(th->tid, th->resumed);
}

int thread_continue(const struct target *t, struct thread *th, int sig, bool to_syscall)
{
	if (t->options.watch.final_scan && !th->is_exiting) {
		keep_registers(th);
		if (ptrace_is_at_exit(th->tid))
			return 0;
	}
	return to_syscall ? ptrace_cont_syscall(th->tid, sig) : ptrace_cont(th->tid, sig);
}

void thread_run(struct target *t, struct thread *th, int sig)
{
	th->is_held = false;
	th->state = THREAD_RUNNING;
	/*
	 * work for us took it out of its group stop: it checks whether that is still in effect
	 * before it runs
	 */
	if (th->is_group_stopped)
		ptrace_interrupt(th->tid);
	if (sig && t->hooks.before_signal)
		t->hooks.before_signal(t, th);
	bool stops_at_syscall = t->hooks.stops_at_syscall && t->hooks.stops_at_syscall(t, th);
	int rc = thread_continue(t, th, sig, stops_at_syscall);
	if (rc != 0 && rc != -ESRCH)
		log_debug("thread %d: cannot be continued: %s", th->tid, strerror(-rc));
}

struct thread *thread_pick(struct target *t, struct address_space *s)
{
	struct thread *th, *best = NULL;
	for_each_thread_in(t, s, th) {
		if (th->is_exiting || !th->is_held || th->vfork.is_waiting)
			continue;
		/* a thread that holds a signal would later get it with another siginfo */
		if (!best || best->state == THREAD_LISTENING ||
		    (best->held_signal && !th->held_signal))
			best = th;
	}
	return best;
}

void thread_end_later(struct target *t, struct thread *th, int status)
{
	pending_stops_defer(&t->pending, th->tid, status);
	th->is_exiting = true;
	th->is_held = false;
}

void thread_consume_stop(struct target *t, struct thread *th)
{
	int status = 0;
	if (waitpid(th->tid, &status, __WALL | WNOHANG) != th->tid)
		return;
	enum stop_kind kind = stop_decode(status).kind;
	if (kind == STOP_EXIT || kind == STOP_EXITED || kind == STOP_KILLED)
		thread_end_later(t, th, status);
}

bool thread_wait_for_news(struct thread *th)
{
	/*
	 * a leader's death is reported only after those of its threads, which may be waiting for
	 * us
	 */
	if (!wait_for_child(5) && proc_is_dead(th->tid))
		th->is_exiting = true;
	return !th->is_exiting;
}
