/*
 * The tables of threads and processes. Threads number up to many thousands, so
 * they are hashed by tid; processes are few.
 */
#include "target/roots.h"
#include "target/thread.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "target/guard.h"
#include "target/pads.h"
#include "target/ptrace.h"

static size_t thread_slot(const struct target *t, pid_t tid)
{
	size_t mask = t->threads.capacity - 1, i = hash_u64((uint64_t)tid) & mask;
	while (t->threads.data[i] && t->threads.data[i]->tid != tid)
		i = (i + 1) & mask;
	return i;
}

struct thread *thread_find(const struct target *t, pid_t tid)
{
	return t->threads.capacity ? t->threads.data[thread_slot(t, tid)] : NULL;
}

static void resize_threads(struct target *t, size_t capacity)
{
	struct thread **old = t->threads.data;
	size_t old_capacity = t->threads.capacity;
	t->threads.data = xcalloc(capacity, sizeof(*old));
	t->threads.capacity = capacity;
	for (size_t i = 0; i < old_capacity; i++) {
		if (old[i])
			t->threads.data[thread_slot(t, old[i]->tid)] = old[i];
	}
	free(old);
}

struct thread *thread_add(struct target *t, pid_t tid, struct process *p)
{
	if (t->thread_count * 2 >= t->threads.capacity)
		resize_threads(t, MAX(t->threads.capacity * 2, (size_t)64));
	struct thread *th = xcalloc(1, sizeof(*th));
	th->tid = tid;
	th->process = p;
	th->state = THREAD_NEW;
	t->threads.data[thread_slot(t, tid)] = th;
	t->thread_count++;
	t->stats.threads++;
	p->threads++;
	return th;
}

void thread_wait_no_more(struct target *t, struct thread *th)
{
	t->waiters -= th->waits_for_room;
	th->waits_for_room = false;
}

void thread_remove(struct target *t, struct thread *th)
{
	thread_wait_no_more(t, th);
	size_t mask = t->threads.capacity - 1, hole = thread_slot(t, th->tid);
	t->threads.data[hole] = NULL;
	/* close the gap: whoever was pushed past it moves back */
	for (size_t i = (hole + 1) & mask; t->threads.data[i]; i = (i + 1) & mask) {
		struct thread *moved = t->threads.data[i];
		t->threads.data[i] = NULL;
		t->threads.data[thread_slot(t, moved->tid)] = moved;
	}
	t->thread_count--;
	th->process->threads--;
	for (size_t i = t->late.count; i-- > 0;) {
		if (t->late.data[i].tid == th->tid)
			vec_take_swap(&t->late, i);
	}
	vec_deinit(&th->calls);
	free(th->stack);
	free(th->far);
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

struct process *process_add(struct target *t, pid_t pid, struct space *space)
{
	struct process *p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	p->space = space;
	*vec_add(&t->processes) = p;
	t->stats.processes++;
	return p;
}

/* Another living process of @s takes over as the one to read memory through. */
static void move_reader(struct target *t, struct space *s, const struct process *leaving)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] != leaving && t->processes.data[i]->space == s) {
			s->reader = t->processes.data[i]->pid;
			if (s->guard)
				s->guard->pid = s->reader;
			return;
		}
	}
}

void process_leave_space(struct target *t, struct process *p, enum space_end why)
{
	struct space *s = p->space;
	if (--s->users == 0) {
		pads_finish(t, s);
		if (s->user)
			t->sink.space_end(t->sink.ctx, s, why);
		pads_free(t, s);
		if (t->promote == s)
			t->promote = NULL;
		space_free(s);
	} else if (s->reader == p->pid) {
		move_reader(t, s, p);
	}
	p->space = NULL;
}

void process_remove(struct target *t, struct process *p, enum space_end why)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] == p) {
			vec_take_swap(&t->processes, i);
			break;
		}
	}
	process_leave_space(t, p, why);
	roots_free(p->last_roots);
	free(p);
}

void thread_note_stop(struct thread *th, enum stop_kind kind)
{
	th->state = kind == STOP_GROUP ? THREAD_LISTENING : THREAD_STOPPED;
	if (kind == STOP_GROUP || kind == STOP_INTERRUPT)
		th->is_group_stopped = kind == STOP_GROUP;
}

bool thread_must_halt(const struct target *t, const struct thread *th)
{
	return t->is_stopping || th->stays;
}

void thread_resume(struct target *t, struct thread *th, int sig)
{
	if (thread_must_halt(t, th)) {
		th->state = THREAD_STOPPED;
		th->is_held = true;
		th->held_signal = sig;
		loop_consume_stop(th->tid); /* or the next wait would find it again */
		return;
	}
	thread_run(t, th, sig);
}

void thread_run(struct target *t, struct thread *th, int sig)
{
	th->is_held = false;
	th->state = THREAD_RUNNING;
	/* what it did for us took it out of its group stop: it says before it runs whether that still holds */
	if (th->is_group_stopped)
		ptrace_interrupt(th->tid);
	if (sig)
		syscalls_before_signal(t, th);
	int rc = syscalls_is_watched(t, th) ? ptrace_cont_syscall(th->tid, sig) :
					      ptrace_cont(th->tid, sig);
	if (rc != 0 && rc != -ESRCH)
		log_debug("thread %d: cannot be continued: %s", th->tid, strerror(-rc));
}

struct thread *thread_pick(struct target *t, struct space *s)
{
	struct thread *best = NULL;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || th->process->space != s || th->is_exiting || !th->is_held ||
		    th->is_in_vfork)
			continue;
		/* one that holds a signal would get it with another siginfo afterwards */
		if (!best || best->state == THREAD_LISTENING ||
		    (best->held_signal && !th->held_signal))
			best = th;
	}
	return best;
}
