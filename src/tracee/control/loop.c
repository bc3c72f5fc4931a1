/* Releases what each layer keeps for an address space, in the order of dependencies. */
#include "tracee/control/control.h"

#include <elf.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/calls.h"
#include "tracee/calls/client_request.h"
#include "tracee/control/faults.h"
#include "tracee/control/install.h"
#include "tracee/control/job.h"
#include "tracee/control/roots.h"
#include "tracee/control/target.h"
#include "tracee/control/thread_stacks.h"
#include "tracee/control/timers.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/environment.h"
#include "tracee/inject/inject.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "tracee/syscalls/syscalls.h"

/* @p leaves its space, which ends with its last process. */
static void process_leave_space(struct target *t, struct process *p, enum space_end why)
{
	struct address_space *s = p->space;
	if (--s->processes.users == 0) {
		pads_finish(t, s);
		if (s->sink.user)
			t->sink.space_end(t->sink.ctx, s, why);
		pads_free(t, s);
		if (t->loop.promote == s)
			t->loop.promote = NULL;
		requests_free(s);
		heap_sampling_free(s->heap.sampling);
		space_free(s);
	} else if (s->processes.reader == p->pid || proc_is_dead(s->processes.reader)) {
		process_move_reader(t, p);
	}
	p->space = NULL;
	if (t->sink.process_left)
		t->sink.process_left(t->sink.ctx, p->pid, why);
}

void process_remove(struct target *t, struct process *p, enum space_end why)
{
	process_unlink(t, p);
	process_leave_space(t, p, why);
	roots_forget_exits(p);
	free(p);
}

/* Children whose parent was killed before it could report them. */

struct process;
struct target;

/*
 * Finds the parent of a process whose first stop came before any event for it. Normally the
 * parent's event follows a moment later. If the parent was killed in between, it never comes, and
 * the child would wait forever: so when a process ends, its unannounced children are searched for.
 * Children of living parents, which will still report them, must not be mistaken for its own: they
 * have another address space, with other pads.
 */

/* ASLR places each image at random addresses; a fork has those of its parent. */
static bool is_image_of(const struct address_space *s, const struct maps *maps)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		const struct map *map = maps_find(maps, m->start);
		if ((i == 0 || m->is_vdso) && (!map || map->start != m->start))
			return false;
	}
	return true;
}

/*
 * Whether @child, a stopped process that is not known yet, was forked by @dying, whose threads have
 * all ended, rather than by a living process that will report it. False if it is gone.
 */
static bool orphan_is_of(const struct target *t, const struct process *dying, pid_t child)
{
	struct proc_status status;
	struct maps maps;
	if (proc_status_read(child, &status) != 0 || status.process != child)
		return false; /* a thread: the event of its creator is still to come */
	const struct process *parent = process_find(t, status.parent);
	if (maps_read(child, &maps) != 0)
		return false;
	bool is_orphan = is_image_of(dying->space, &maps) &&
			 (!parent || parent == dying || !is_image_of(parent->space, &maps));
	maps_deinit(&maps);
	return is_orphan;
}

/* Stops at execve. */

struct target;
struct thread;

/* Follows, rejects or detaches from a new image. */

/* Threads of @p other than @keep ended in the exec, without being reported. */
static void drop_other_threads(struct target *t, struct process *p, struct thread *keep)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (th != keep && th->process == p)
			thread_remove(t, th);
	}
}

/*
 * @th runs another program, maybe under another thread id than before: its old state is dropped. A
 * signal held for the thread that died must not be delivered to the new program.
 */
static void forget_former(struct target *t, struct thread *th)
{
	call_state_clear(&th->calls);
	pad_thread_forget(th);
	th->is_exiting = false;
	th->held_signal = 0;
	th->hit_trap = false;
	th->own_stack = (struct stack_range){0};
	syscalls_forget(th);
}

static bool is_supported_image(struct target *t, pid_t pid)
{
	char name[64];
	struct elf_file *file;
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	if (elf_file_open(&t->registry->files, name, NULL, &file) != 0)
		return true; /* unreadable: install checks the maps later */
	bool ok = file->machine == t->arch->elf_machine && file->elf_class == t->arch->elf_class;
	elf_file_release(file);
	return ok;
}

/*
 * The stop for execve is still inside the call; nothing can be installed before the first
 * instruction. An interrupt stops the thread there.
 */
static void stop_in_image(struct thread *th)
{
	th->was_interrupted = ptrace_interrupt(th->tid) == 0;
	th->is_held = false;
	th->state = THREAD_RUNNING;
	ptrace_cont(th->tid, 0);
}

/*
 * @th is at the first instruction of an image that survives ptmem: installs the handler, then
 * probes.
 * @th is at the first instruction of an image that survives ptmem: guard it first.
 */
static void exec_start_image(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	p->awaits_start = false;
	journal_begin(t, p->space);
	int rc = space_update_modules(p->space, NULL, NULL, NULL);
	if (rc == 0)
		rc = trap_handler_install(t, p->space, th);
	if (rc == 0) {
		install_at_start(t, th);
		return;
	}
	log_warn("process %d: the program that it executed is not profiled: no handler of SIGTRAP "
		 "can be installed: %s", p->pid, strerror(-rc));
	p->space->watch.is_profiled = false;
	t->sink.image_refused(t->sink.ctx, p->space, "no handler of SIGTRAP could be installed");
}

static void add_variable(struct target *t, struct address_space *s, struct thread *th)
{
	const char *text = t->sink.variable ? t->sink.variable(t->sink.ctx, s) : NULL;
	int rc = text ? environment_add(t, s, th, text) : -ENOENT;

	s->image.has_variable = rc == 0;
	if (rc != 0 && text)
		log_verbose("process %d: %s is not added to its environment: %s", s->processes.pid,
			    text, strerror(-rc));
}

/* @p runs a new image in @th, now its only thread. */
static void start_image(struct target *t, struct process *p, struct thread *th)
{
	struct address_space *s = space_new(t->registry, p->pid);
	p->space = s;
	p->is_vfork_child = false;
	s->watch.is_profiled = true;
	add_variable(t, s, th);
	if (t->recovery.journals) {
		p->awaits_start = true;
		stop_in_image(th);
		return;
	}
	if (t->options.probes.none)
		install_probes(t, s, th);
	else if (install_start_trap(t, th) != 0)
		t->sink.image_refused(t->sink.ctx, s, "its memory could not be written");
	thread_resume(t, th, 0);
}

static void detach_image(struct target *t, struct process *p, struct thread *th, enum space_end why)
{
	pid_t tid = th->tid;
	thread_remove(t, th);
	process_remove(t, p, why);
	ptrace_detach(tid, 0);
}

/* @p is not followed any more, but calls stopped by our filter need a tracer. */
static void continue_unprofiled(struct target *t, struct process *p, struct thread *th)
{
	process_leave_space(t, p, SPACE_EXEC);
	p->space = space_new(t->registry, p->pid);
	p->is_vfork_child = false;
	thread_resume(t, th, 0);
}

/* Whether the program that @p executes is profiled, too. */
static bool is_followed(struct target *t, const struct process *p)
{
	const struct follow_options *o = &t->options.follow;
	if (o->exec)
		return !t->sink.skip_exec || !t->sink.skip_exec(t->sink.ctx, p->pid);
	return o->own_exec && !p->is_forked;
}

/* Handles the stop of @th at an execve: the space ends; the new image is followed or detached. */
static void exec_serve(struct target *t, struct thread *th)
{
	unsigned long former = 0;
	/* for a thread that has taken over its leader's id the kernel rejects requests before
	 * (looks_like_a_spurious_pid, Linux 5.13) */
	thread_consume_stop(t, th);
	ptrace_event_message(th->tid, &former);
	struct thread *leader = th;
	if (former != (unsigned long)th->tid && former) {
		/* another thread called exec: it has the leader's id now */
		struct thread *caller = thread_find(t, (pid_t)former);
		if (caller)
			thread_remove(t, caller);
	}
	struct process *p = leader->process;
	faults_drain(t);
	drop_other_threads(t, p, leader);
	roots_forget_exits(p); /* calls that the exec ended */
	forget_former(t, leader);
	if (p->is_attaching) { /* the new image is to be profiled */
		stop_in_image(leader);
		return;
	}
	bool is_first = p->is_started && p->is_execing;
	p->is_first_image = is_first;
	if (is_first)
		syscalls_detect_mode(t, p->pid);
	p->is_execing = false;
	if (p->space && (is_first || is_followed(t, p)) && !t->is_released) {
		bool fits = is_supported_image(t, p->pid);
		if (is_first && !fits)
			t->first.refusal = ATTACH_32BIT;
		else if (!fits)
			log_warn("process %d: a 32-bit program (or one of another machine): not "
				 "profiled",
				 p->pid);
		process_leave_space(t, p, fits ? SPACE_NEXT_IMAGE : SPACE_EXEC);
		if (fits) {
			start_image(t, p, leader);
			return;
		}
		p->space = space_new(t->registry, p->pid);
		if (is_first) {
			kill(p->pid, SIGKILL); /* nothing of it has run: the program is rejected */
			thread_resume(t, leader, 0);
			return;
		}
	}
	if (p->is_forked && !p->is_left && !t->options.follow.exec && !t->is_released) {
		p->is_left = true; /* what it forks is seen or not, by the way of following it */
		left_children_add(t, p->pid);
		timers_run_by(t, clock_now_ns() + LEFT_CHILDREN_WAIT_NS);
	}
	if (t->syscalls.way == SYSCALLS_FILTER)
		continue_unprofiled(t, p, leader);
	else
		detach_image(t, p, leader, SPACE_EXEC);
}

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
	p->is_left = parent->process->is_left;
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
	if (sig == SIGSEGV && restore_serve_fault(t, th))
		return;
	if ((sig == SIGSEGV || sig == SIGBUS) && pads_skip_fault(t, th))
		return;
	call_state_note_signal(&th->calls);
	inject_note_signal(t, th, sig);
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
	thread_stacks_last(t, th);
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
			waitpid(tid, NULL, __WALL | WNOHANG);
			pending_stops_add_unannounced(&t->pending, tid, status);
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
