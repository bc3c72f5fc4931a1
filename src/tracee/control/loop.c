/*
 * The event loop waits for one stop, decodes it and handles it.
 *
 *	stop          action
 *	signal        trap_serve if it is a breakpoint of ours; else delivered once
 *	group         PTRACE_LISTEN: the thread stays stopped as its parent expects; job.c stops
 *	              ptmem, if that is the parent
 *	interrupt     continues; system calls that the stop interrupted are restarted
 *	fork, vfork,  the child is added: a thread, a process that shares the space, or
 *	clone         a process with a copy of it
 *	vfork done    continues
 *	exec          the space ends; the new image is followed or detached
 *	syscall,      syscalls_serve: what was mapped and unmapped
 *	seccomp
 *	exit          final scan while the memory exists
 *	exited,killed the thread is gone; with the last one its process
 *
 * A child's first stop may arrive before its parent's event: it is deferred until then.
 */
#include "tracee/control/loop.h"

#include <elf.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/calls.h"
#include "tracee/calls/requests.h"
#include "tracee/calls/trap.h"
#include "tracee/control/exec.h"
#include "tracee/control/faults.h"
#include "tracee/control/job.h"
#include "tracee/control/orphan.h"
#include "tracee/control/process_end.h"
#include "tracee/control/restore.h"
#include "tracee/control/roots.h"
#include "tracee/control/sample.h"
#include "tracee/control/thread_stacks.h"
#include "tracee/inject/restart.h"
#include "tracee/os/ptrace.h"
#include "tracee/os/stop.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_fork.h"
#include "tracee/pads/pad_ticks.h"
#include "tracee/pads/pad_threads.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/heap_sampling.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap.h"
#include "tracee/syscalls/syscalls.h"

/* -- new processes and threads -- */

/* The flags of the clone, fork or vfork that @th is executing. */
static uint64_t clone_flags(struct target *t, struct thread *th, enum stop_kind kind)
{
	struct arch_regs regs;
	uint64_t flags = kind == STOP_VFORK ? CLONE_VM | CLONE_VFORK : 0;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return flags;
	uint64_t first = regs.word[t->arch->syscall_arg[0]];
	switch ((long)regs.word[t->arch->syscall_nr]) {
	case SYS_clone:
		return first;
	case SYS_clone3:
		space_read(th->process->space, first, &flags, sizeof(flags));
		return flags;
	}
	return flags;
}

static void serve_unannounced(struct target *t, pid_t tid)
{
	int status;
	if (pending_stops_take_unannounced(&t->pending, tid, &status))
		loop_serve(t, tid, status);
}

static void put_aside(struct target *t, pid_t tid, int status)
{
	waitpid(tid, NULL, __WALL | WNOHANG);
	pending_stops_add_unannounced(&t->pending, tid, status);
}

static pid_t process_of(pid_t tid)
{
	struct proc_status st;
	return proc_status_read(tid, &st) == 0 ? st.process : 0;
}

/* Adds a thread that is about to end, and whose creator was killed before its event. */
static struct thread *adopt_dying(struct target *t, pid_t tid)
{
	struct process *p = process_find(t, process_of(tid));
	if (!p || p->pid == tid)
		return NULL;
	int status;
	while (pending_stops_take_unannounced(&t->pending, tid, &status))
		;
	return thread_add(t, tid, p);
}

/*
 * A thread that executed a program has the id of its process's first thread, which may be unknown:
 * it was dead when the others were seized, or before the attach.
 */
static struct thread *adopt_leader(struct target *t, pid_t tid)
{
	struct process *p = process_find(t, tid);
	return p ? thread_add(t, tid, p) : NULL;
}

/* @pid, a fork by @th (NULL: that is dead), gets @s for itself. */
static struct address_space *fork_space(struct target *t, struct address_space *s,
					struct thread *th, pid_t pid)
{
	pads_catch_up(t, s);
	struct address_space *own = space_fork(s, pid);
	heap_sampling_fork(t, s, own);
	requests_fork(s, own);
	journal_fork(t, s, own);
	pads_fork(t, s, own, th);
	if (s->sink.user && s->watch.is_profiled)
		t->sink.space_fork(t->sink.ctx, s, own);
	return own;
}

static struct process *add_child(struct target *t, struct thread *parent, pid_t pid, uint64_t flags)
{
	struct address_space *s = parent->process->space;
	if (flags & CLONE_VM)
		s->processes.users++;
	struct address_space *child = flags & CLONE_VM ? s : fork_space(t, s, parent, pid);
	struct process *p = process_add(t, pid, child);
	p->is_vfork_child = flags & CLONE_VM;
	p->is_forked = true;
	return p;
}

/*
 * Inside fork or clone a thread cannot make system calls for us: the kernel writes the child's id
 * into its registers when it continues. So while all threads are stopped it continues until its
 * return to the program.
 */
static void resume_inside_call(struct target *t, struct thread *th)
{
	if (!thread_must_halt(t, th) || ptrace_interrupt(th->tid) != 0) {
		thread_resume(t, th, 0);
		return;
	}
	th->was_interrupted = true;
	thread_run(t, th, 0);
}

static void serve_child(struct target *t, struct thread *th, enum stop_kind kind)
{
	unsigned long child = 0;
	pads_share(th->process->space);
	if (ptrace_event_message(th->tid, &child) == 0 && child != 0 &&
	    !thread_find(t, (pid_t)child)) {
		uint64_t flags = clone_flags(t, th, kind);
		struct process *p = th->process;
		if (!(flags & CLONE_THREAD))
			p = add_child(t, th, (pid_t)child, flags);
		struct thread *child_thread = thread_add(t, (pid_t)child, p);
		child_thread->is_new = true;
		if (!(flags & CLONE_VM))
			call_state_copy(&child_thread->calls, &th->calls);
		thread_stacks_thread_started(t, th, child_thread);
	}
	th->vfork.is_waiting = kind == STOP_VFORK && ptrace_get_regs(th->tid, &th->vfork.regs) == 0;
	if (kind == STOP_VFORK) /* returns when the child is gone, which is stopped with us */
		thread_resume(t, th, 0);
	else
		resume_inside_call(t, th);
	if (child)
		serve_unannounced(t, (pid_t)child);
}

/* -- ends -- */

static void adopt_orphans(struct target *t, struct process *dying)
{
	/* forked, but the parent died before its event */
	for (size_t i = 0; i < t->pending.unannounced.count; i++) {
		pid_t tid = t->pending.unannounced.data[i].tid;
		if (thread_find(t, tid) || dying->space->processes.users > 1 ||
		    !orphan_is_of(t, dying, tid))
			continue;
		struct process *p = process_add(t, tid, fork_space(t, dying->space, NULL, tid));
		p->is_forked = true;
		thread_add(t, tid, p);
		serve_unannounced(t, tid);
		i = (size_t)-1;
	}
}

static void serve_end(struct target *t, struct thread *th, int status)
{
	struct process *p = th->process;
	struct address_space *s = p->space;
	pid_t tid = th->tid;
	faults_drain(t);
	if (t->options.watch.final_scan && !th->is_exiting)
		roots_serve_missed_exit(t, th);
	pads_thread_exit(t, th);
	call_drop(t, th, UINT64_MAX);
	if (s->sink.user)
		t->sink.thread_exit(t->sink.ctx, s, tid);
	thread_remove(t, th);
	if (tid == s->processes.pid)
		s->processes.exit_status = status;
	if (p->threads == 0 && p->pid == s->processes.pid && s->processes.exit_status < 0 &&
	    WIFSIGNALED(status)) /* its first thread had ended before it was attached to */
		s->processes.exit_status = status;
	if (tid == p->pid && p->is_started && !t->first.has_status) {
		t->first.has_status = true;
		t->first.status = status;
		job_end(t);
	}
	if (p->threads > 0)
		return;
	adopt_orphans(t, p);
	process_remove(t, p, SPACE_EXITED);
}

/* -- interrupts -- */

static void serve_interrupt(struct target *t, struct thread *th, bool was_interrupted)
{
	if (was_interrupted)
		inject_restart_interrupted(t, th);
	if (th->wants_sample)
		sample_take(t, th);
	if (th->is_new) {
		th->is_new = false;
		pads_thread_started(t, th);
	}
	thread_resume(t, th, th->held_signal);
	if (!thread_must_halt(t, th))
		th->held_signal = 0;
}

static void serve_group_stop(struct target *t, struct thread *th, int sig)
{
	job_note_stop(t, th->process, sig);
	if (t->is_stopping) {
		th->is_held = true;
		thread_consume_stop(t, th);
		return;
	}
	ptrace_listen(th->tid);
}

static void serve_signal(struct target *t, struct thread *th, int sig)
{
	enum trap_answer answer = sig == SIGTRAP ? trap_serve(t, th) : TRAP_NOT_OURS;
	if (answer != TRAP_NOT_OURS)
		space_note_trap(th->process->space, clock_now_ns() - t->now_ns);
	if (answer == TRAP_RESUME) {
		thread_resume(t, th, 0);
		return;
	}
	if (sig == SIGSEGV && (restore_serve_fault(t, th) || pads_skip_ticks(t, th)))
		return;
	call_state_note_signal(&th->calls);
	thread_resume(t, th, sig);
}

static bool has_living_threads(const struct target *t, const struct process *p)
{
	const struct thread *th;
	for_each_thread(t, th) {
		if (th->process == p && !th->is_exiting)
			return true;
	}
	return false;
}

/* Another thread of the process becomes the one for access to its memory, if that was @th. */
static void move_reader(struct target *t, const struct thread *th)
{
	struct address_space *s = th->process->space;
	const struct thread *other;
	if (s->processes.reader != th->tid)
		return;
	for_each_thread(t, other) {
		if (other->process == th->process && !other->is_exiting)
			s->processes.reader = other->tid;
	}
}

/* @th is about to end; its memory is still there. */
static void serve_exit(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	faults_drain(t);
	syscalls_serve_exit(t, th);
	th->is_exiting = true;
	if (t->options.watch.final_scan)
		roots_serve_exit(t, th);
	if (t->sink.thread_exiting && p->space->sink.user)
		t->sink.thread_exiting(t->sink.ctx, p->space, th->tid);
	bool others_live = has_living_threads(t, p);
	if (!others_live && p->space->pads)
		pads_drain(t, p->space); /* stacks in generated code are unwound by its memory */
	if (t->sink.process_exit && p->space->sink.user && !others_live)
		t->sink.process_exit(t->sink.ctx, p->space, p->pid, th->tid);
	if (others_live) {
		thread_stacks_exit(t, th);
		move_reader(t, th);
	}
	/*
	 * Even if all others are stopped: one may be in execve, which waits for the ends of all
	 * others and cannot be stopped.
	 */
	thread_run(t, th, 0);
}

/* The thread @tid, which is at a stop of @kind; NULL if it is not known yet. */
static struct thread *find_stopped(struct target *t, pid_t tid, enum stop_kind kind)
{
	struct thread *th = thread_find(t, tid);
	if (!th && kind == STOP_EXIT)
		th = adopt_dying(t, tid);
	if (!th && kind == STOP_EXEC)
		th = adopt_leader(t, tid);
	return th;
}

void loop_serve(struct target *t, pid_t tid, int status)
{
	struct stop stop = stop_decode(status);
	struct thread *th = find_stopped(t, tid, stop.kind);
	if (!th) {
		if (stop.kind != STOP_EXITED && stop.kind != STOP_KILLED) {
			put_aside(t, tid, status);
		} else if (tid == t->first.pid && !t->first.has_status) {
			t->first.has_status = true;
			t->first.status = status;
		}
		return;
	}
	t->stats.stops++;
	thread_note_stop(th, stop.kind);
	/* any stop also consumes a pending interrupt (ptrace_stop in the kernel) */
	bool was_interrupted = th->was_interrupted;
	th->was_interrupted = false;
	th->vfork.is_waiting = false;
	if (th->process->awaits_start && (stop.kind == STOP_INTERRUPT || stop.kind == STOP_GROUP))
		exec_start_image(t, th);
	switch (stop.kind) {
	case STOP_SIGNAL:
		serve_signal(t, th, stop.value);
		break;
	case STOP_GROUP:
		serve_group_stop(t, th, stop.value);
		break;
	case STOP_INTERRUPT:
		serve_interrupt(t, th, was_interrupted);
		break;
	case STOP_FORK:
	case STOP_VFORK:
	case STOP_CLONE:
		serve_child(t, th, stop.kind);
		break;
	case STOP_VFORK_DONE:
		th->stays_held |= t->is_leaving;
		resume_inside_call(t, th);
		break;
	case STOP_EXEC:
		exec_serve(t, th);
		break;
	case STOP_EXITED:
	case STOP_KILLED:
		serve_end(t, th, status);
		break;
	case STOP_SYSCALL:
		syscalls_serve(t, th, was_interrupted);
		break;
	case STOP_SECCOMP:
		syscalls_serve_seccomp(t, th);
		break;
	case STOP_EXIT:
		serve_exit(t, th);
		break;
	default:
		thread_resume(t, th, 0);
		break;
	}
}
