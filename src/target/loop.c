/*
 * The loop: one stop is waited for, decoded and served.
 *
 *	stop          served by
 *	signal        trap_serve if it is a breakpoint of ours; else delivered once
 *	group         PTRACE_LISTEN: the thread stays stopped for its parent to see
 *	interrupt     goes on; system calls that a stop makes fail are restarted
 *	fork, vfork,  the child becomes known: a thread, a process that shares the
 *	clone         space, or a process with a copy of it
 *	vfork done    goes on
 *	exec          the space ends; the new image is followed or let go
 *	syscall,      syscalls_serve: what was mapped and unmapped
 *	seccomp
 *	exit          last look while the memory is there
 *	exited,killed the thread is gone; with the last one its process
 *
 * A child's first stop may arrive before its parent's event announces it: it is
 * put aside until then.
 */
#include <elf.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/elf_file.h"
#include "base/log.h"
#include "base/proc.h"
#include "target/faults.h"
#include "target/ptrace.h"
#include "target/guard.h"
#include "target/orphan.h"
#include "target/pads.h"
#include "target/roots.h"
#include "target/thread.h"

uint64_t target_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* -- new processes and threads -- */

/* The flags of the clone, fork or vfork that @th is just making. */
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

static void serve_early(struct target *t, pid_t tid)
{
	for (size_t i = 0; i < t->early_count; i++) {
		if (t->early[i].tid != tid)
			continue;
		int status = t->early[i].status;
		t->early[i] = t->early[--t->early_count];
		loop_serve(t, tid, status);
		return;
	}
}

static void put_aside(struct target *t, pid_t tid, int status)
{
	t->early = xgrow(t->early, &t->early_capacity, t->early_count + 1, sizeof(*t->early));
	loop_consume_stop(tid);
	t->early[t->early_count].tid = tid;
	t->early[t->early_count++].status = status;
}

static pid_t process_of(pid_t tid)
{
	struct proc_status st;
	return proc_status_read(tid, &st) == 0 ? st.process : 0;
}

/* A thread that is about to end, and whose maker was killed before it could announce it. */
static struct thread *adopt_dying(struct target *t, pid_t tid)
{
	struct process *p = process_find(t, process_of(tid));
	if (!p || p->pid == tid)
		return NULL;
	for (size_t i = t->early_count; i-- > 0;) {
		if (t->early[i].tid == tid)
			t->early[i] = t->early[--t->early_count];
	}
	return thread_add(t, tid, p);
}

static void copy_calls(const struct thread *from, struct thread *to)
{
	for (size_t i = 0; i < from->calls.count; i++)
		*vec_add(&to->calls) = from->calls.data[i];
}

/* @s as @pid, a fork by @th (NULL: that is dead), has it for itself. */
static struct space *fork_space(struct target *t, struct space *s, struct thread *th, pid_t pid)
{
	pads_catch_up(t, s);
	struct space *own = space_fork(s, pid);
	guard_space_forked(t, s, own);
	pads_fork(t, s, own, th);
	if (s->user && s->is_profiled)
		t->sink.space_fork(t->sink.ctx, s, own);
	return own;
}

static struct process *add_child(struct target *t, struct thread *parent, pid_t pid, uint64_t flags)
{
	struct space *s = parent->process->space;
	if (flags & CLONE_VM)
		s->users++;
	struct process *p = process_add(t, pid, flags & CLONE_VM ? s : fork_space(t, s, parent, pid));
	p->is_vfork_child = flags & CLONE_VM;
	return p;
}

/*
 * Where it stands, inside fork or clone, a thread cannot make system calls for us: the
 * kernel writes the child's id into its registers when it goes on. So while all are
 * stopped it goes on as far as its return to the program.
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
		struct thread *born = thread_add(t, (pid_t)child, p);
		born->is_new = true;
		if (!(flags & CLONE_VM))
			copy_calls(th, born);
		thread_stacks_born(t, th, born);
	}
	th->is_in_vfork = kind == STOP_VFORK && ptrace_get_regs(th->tid, &th->vfork_regs) == 0;
	if (kind == STOP_VFORK) /* returns when the child is gone, who stands still with us */
		thread_resume(t, th, 0);
	else
		resume_inside_call(t, th);
	if (child)
		serve_early(t, (pid_t)child);
}

/* -- exec -- */

/* Threads of @p other than @keep died with the exec, without a word. */
static void drop_other_threads(struct target *t, struct process *p, struct thread *keep)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th != keep && th->process == p) {
			thread_remove(t, th);
			i = (size_t)-1; /* the table closed a gap: look again */
		}
	}
}

static bool is_supported_image(struct target *t, pid_t pid)
{
	char name[64];
	struct elf_file *file;
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	if (elf_file_open(name, NULL, &file) != 0)
		return true; /* unreadable: the maps will tell */
	bool ok = file->machine == t->arch->elf_machine && file->elf_class == t->arch->elf_class;
	elf_file_release(file);
	return ok;
}

/* @p runs a new image in @th, its only thread now. */
static void start_image(struct target *t, struct process *p, struct thread *th)
{
	struct space *s = space_new(p->pid);
	p->space = s;
	p->is_vfork_child = false;
	s->is_profiled = true;
	if (t->options.no_probes)
		install_probes(t, s, th);
	else if (install_start_trap(t, th) != 0)
		log_verbose("process %d: its new program cannot be watched", p->pid);
	thread_resume(t, th, 0);
}

static void let_go(struct target *t, struct process *p, struct thread *th, enum space_end why)
{
	pid_t tid = th->tid;
	thread_remove(t, th);
	process_remove(t, p, why);
	ptrace_detach(tid, 0);
}

/* @p is of no interest any more, but its calls that our filter stops need somebody to answer. */
static void stay_unprofiled(struct target *t, struct process *p, struct thread *th)
{
	process_leave_space(t, p, SPACE_EXEC);
	p->space = space_new(p->pid);
	p->is_vfork_child = false;
	thread_resume(t, th, 0);
}

/*
 * Seized in the middle of its execve: the new image is the one to profile. This stop
 * took the place of the interrupt that was asked for, and is inside the call yet;
 * nothing can be put in before the first instruction.
 */
static void stop_in_image(struct thread *th)
{
	th->was_interrupted = ptrace_interrupt(th->tid) == 0;
	th->is_held = false;
	th->state = THREAD_RUNNING;
	ptrace_cont(th->tid, 0);
}

static void serve_exec(struct target *t, struct thread *th)
{
	unsigned long former = 0;
	/* of a thread that has got its leader's id the kernel answers no request before
	 * (looks_like_a_spurious_pid, Linux 5.13) */
	loop_consume_stop(th->tid);
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
	thread_wait_no_more(t, leader);
	leader->calls.count = 0;
	leader->has_deleted = false;
	leader->thread_pointer = 0;
	leader->is_exiting = false;
	syscalls_forget(leader);
	if (p->is_attaching) {
		stop_in_image(leader);
		return;
	}
	bool is_first = p->is_started && p->is_execing;
	p->is_first_image = is_first;
	if (is_first)
		syscalls_settle(t, p->pid);
	p->is_execing = false;
	bool is_followed = t->options.follow_own_exec ||
			   (t->options.follow_exec &&
			    !(t->sink.skip_exec && t->sink.skip_exec(t->sink.ctx, p->pid)));
	if (p->space && (is_first || is_followed) && !t->is_released) {
		bool fits = is_supported_image(t, p->pid);
		if (is_first && !fits)
			t->refusal = ATTACH_32BIT;
		else if (!fits)
			log_warn("process %d: a 32-bit program (or one of another machine): not "
				 "profiled",
				 p->pid);
		process_leave_space(t, p, fits ? SPACE_NEXT_IMAGE : SPACE_EXEC);
		if (fits) {
			start_image(t, p, leader);
			return;
		}
		p->space = space_new(p->pid);
		if (is_first) {
			kill(p->pid, SIGKILL); /* nothing of it ran: the program is refused */
			thread_resume(t, leader, 0);
			return;
		}
	}
	if (t->syscalls == SYSCALLS_FILTER)
		stay_unprofiled(t, p, leader);
	else
		let_go(t, p, leader, SPACE_EXEC);
}

/* -- ends -- */

static void adopt_orphans(struct target *t, struct process *dying)
{
	/* forked, but the parent died before it could tell */
	for (size_t i = 0; i < t->early_count; i++) {
		pid_t tid = t->early[i].tid;
		if (thread_find(t, tid) || dying->space->users > 1 || !orphan_is_of(t, dying, tid))
			continue;
		thread_add(t, tid, process_add(t, tid, fork_space(t, dying->space, NULL, tid)));
		serve_early(t, tid);
		i = (size_t)-1;
	}
}

static void serve_end(struct target *t, struct thread *th, int status)
{
	struct process *p = th->process;
	struct space *s = p->space;
	pid_t tid = th->tid;
	faults_drain(t);
	pads_thread_exit(t, th);
	trap_drop_calls(t, th, UINT64_MAX);
	if (s->user)
		t->sink.thread_exit(t->sink.ctx, s, tid);
	thread_remove(t, th);
	if (tid == p->pid && p->is_started && !t->has_status) {
		t->has_status = true;
		t->status = status;
	}
	if (p->threads > 0)
		return;
	adopt_orphans(t, p);
	process_remove(t, p, SPACE_EXITED);
}

/* -- interrupts -- */

/*
 * Some system calls return -EINTR from a mere stop (signal(7), "Interruption of
 * system calls and library functions by stop signals"). The program must not
 * see that: let it call again. A signal that really waits interrupts it anew.
 */
void loop_restart_interrupted(struct target *t, struct thread *th)
{
	static const long restarted[] = {
		SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_semop, SYS_semtimedop,
		SYS_rt_sigtimedwait, SYS_io_getevents, SYS_io_pgetevents, SYS_msgrcv, SYS_msgsnd,
	};
	struct arch_regs regs;
	const struct arch *arch = t->arch;
	if (ptrace_get_regs(th->tid, &regs) != 0 || (int64_t)regs.word[arch->syscall_ret] != -EINTR)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(restarted); i++) {
		if ((long)regs.word[arch->syscall_nr] != restarted[i])
			continue;
		regs.word[arch->syscall_ret] = regs.word[arch->syscall_nr];
		regs.word[arch->syscall_nr] = (uint64_t)-1;
		regs.word[arch->pc] -= arch->syscall_insn_size;
		ptrace_set_regs(th->tid, &regs);
		return;
	}
}

static void serve_interrupt(struct target *t, struct thread *th, bool was_interrupted)
{
	if (was_interrupted)
		loop_restart_interrupted(t, th);
	if (th->wants_sample)
		sample_take(t, th);
	if (th->is_new) {
		th->is_new = false;
		pads_born(t, th);
	}
	thread_resume(t, th, th->held_signal);
	if (!thread_must_halt(t, th))
		th->held_signal = 0;
}

static void serve_group_stop(struct target *t, struct thread *th)
{
	if (t->is_stopping) {
		th->is_held = true;
		loop_consume_stop(th->tid);
		return;
	}
	ptrace_listen(th->tid);
}

static void serve_signal(struct target *t, struct thread *th, int sig)
{
	enum trap_answer answer = sig == SIGTRAP ? trap_serve(t, th) : TRAP_FOREIGN;
	if (answer != TRAP_FOREIGN)
		th->process->space->pauses.trap_ns += target_clock() - t->now_ns;
	if (answer == TRAP_GO_ON) {
		thread_resume(t, th, 0);
		return;
	}
	if (answer == TRAP_WAIT) {
		th->waits_for_room = true;
		t->waiters++;
		loop_consume_stop(th->tid);
		return;
	}
	if (th->calls.count > 0)
		th->had_signal = true;
	thread_resume(t, th, sig);
}

static bool has_living_threads(const struct target *t, const struct process *p)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		const struct thread *th = t->threads.data[i];
		if (th && th->process == p && !th->is_exiting)
			return true;
	}
	return false;
}

/* @th is about to end; its memory is still there. */
static void serve_exit(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	faults_drain(t);
	syscalls_serve_exit(t, th);
	th->is_exiting = true;
	if (t->options.last_look)
		roots_serve_exit(t, th);
	bool others_live = has_living_threads(t, p);
	if (t->sink.process_exit && p->space->user && !others_live)
		t->sink.process_exit(t->sink.ctx, p->space, p->pid, th->tid);
	if (others_live)
		thread_stacks_exit(t, th);
	/* even if all stand still: another one may be in execve, which waits for the ends of all others and
	 * cannot be stopped */
	thread_run(t, th, 0);
}

void loop_serve(struct target *t, pid_t tid, int status)
{
	struct stop stop = stop_decode(status);
	struct thread *th = thread_find(t, tid);
	if (!th && stop.kind == STOP_EXIT)
		th = adopt_dying(t, tid);
	if (!th) {
		if (stop.kind != STOP_EXITED && stop.kind != STOP_KILLED) {
			put_aside(t, tid, status);
		} else if (tid == t->first_pid && !t->has_status) {
			t->has_status = true;
			t->status = status;
		}
		return;
	}
	t->stats.stops++;
	thread_note_stop(th, stop.kind);
	/* any stop takes an interrupt that was still to come with it (ptrace_stop in the kernel) */
	bool was_interrupted = th->was_interrupted;
	th->was_interrupted = false;
	th->is_in_vfork = false;
	switch (stop.kind) {
	case STOP_SIGNAL:
		serve_signal(t, th, stop.value);
		break;
	case STOP_GROUP:
		serve_group_stop(t, th);
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
		th->stays |= t->is_leaving;
		resume_inside_call(t, th);
		break;
	case STOP_EXEC:
		serve_exec(t, th);
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

void loop_serve_later(struct target *t, struct thread *th, int status)
{
	*vec_add(&t->late) = (struct late_stop){th->tid, status};
	th->is_exiting = true;
	th->is_held = false;
}

/*
 * Waits for a stop without consuming it: if ptmem is killed while it serves the
 * stop, the kernel then still delivers the signal that the thread had stopped
 * for. (A stop that was consumed loses its signal with its tracer.)
 */
static int wait_stop(idtype_t whose, pid_t tid, bool no_wait, struct late_stop *out)
{
	siginfo_t info = {0};
	if (waitid(whose, (id_t)tid, &info,
		   WEXITED | WSTOPPED | WNOWAIT | __WALL | (no_wait ? WNOHANG : 0)) != 0)
		return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	out->tid = info.si_pid;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return waitpid(info.si_pid, &out->status, __WALL) == info.si_pid ? 0 : -EAGAIN;
	out->status = info.si_status << 8 | 0x7f; /* as waitpid would give it */
	return 0;
}

/* @rc: whether there is @stop. */
static int serve_now(struct target *t, int rc, struct late_stop stop)
{
	if (rc != 0)
		return rc;
	t->now_ns = target_clock();
	loop_serve(t, stop.tid, stop.status);
	return 0;
}

void loop_consume_stop(pid_t tid)
{
	int status = 0;
	waitpid(tid, &status, __WALL | WNOHANG);
}

int loop_step(struct target *t, bool no_wait)
{
	struct late_stop stop = {0};
	int rc = 0;
	if (t->late.count > 0) {
		stop = t->late.data[0];
		vec_take_swap(&t->late, 0);
	} else {
		rc = wait_stop(P_ALL, 0, no_wait, &stop);
	}
	return serve_now(t, rc, stop);
}

int loop_step_thread(struct target *t, struct thread *th)
{
	struct late_stop stop = {0};
	int rc = wait_stop(P_PID, th->tid, true, &stop);
	return serve_now(t, rc, stop);
}
