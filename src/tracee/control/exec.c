/* Follows, rejects or detaches from a new image. */
#include "tracee/control/exec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "tracee/control/faults.h"
#include "tracee/control/control_internal.h"
#include "tracee/control/install.h"
#include "tracee/control/process_end.h"
#include "tracee/control/roots.h"
#include "tracee/control/target.h"
#include "tracee/control/timers.h"
#include "tracee/guard/trap_handler.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_thread.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/registry.h"
#include "tracee/state/space.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/syscalls.h"

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

/* @th is at the first instruction of an image that survives ptmem: guard it first. */
void exec_start_image(struct target *t, struct thread *th)
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

/* @p runs a new image in @th, now its only thread. */
static void start_image(struct target *t, struct process *p, struct thread *th)
{
	struct address_space *s = space_new(t->registry, p->pid);
	p->space = s;
	p->is_vfork_child = false;
	s->watch.is_profiled = true;
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

void exec_serve(struct target *t, struct thread *th)
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
	if (p->is_forked && !t->options.follow.exec && !t->is_released) {
		left_children_add(t, p->pid);
		timers_run_by(t, clock_now_ns() + LEFT_CHILDREN_WAIT_NS);
	}
	if (t->syscalls.way == SYSCALLS_FILTER)
		continue_unprofiled(t, p, leader);
	else
		detach_image(t, p, leader, SPACE_EXEC);
}
