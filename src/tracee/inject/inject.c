/* Signals of a thread that works for ptmem: the first is held, all others are blocked. */
#include "tracee/inject/inject.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/types.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/*
 * Signals that arrive while @th works for us. They are delivered afterwards, each with its own
 * siginfo: the kernel takes signal and siginfo from the thread's last stop, which must be a stop
 * for a signal.
 */
struct held {
	siginfo_t info;
	bool has_info;
	bool blocks;   /* only one signal can be held: the next one blocks all others */
	bool is_quiet; /* signals are blocked */
	uint64_t mask; /* the mask before */
};

/*
 * Blocks all further signals until the end of the work; a guardian would restore the mask, too.
 * Does not block SIGTRAP: a blocked SIGTRAP would lose its handler.
 */
static void held_block(struct thread *th, struct held *held)
{
	if (!held->blocks || held->is_quiet || ptrace_get_sigmask(th->tid, &held->mask) != 0)
		return;
	journal_note_mask(th->process->space, th->tid, held->mask);
	held->is_quiet = ptrace_set_sigmask(th->tid, ~SIGTRAP_BIT) == 0;
}

/*
 * @th may have changed its mask itself, at the end of an injected call or of a signal handler: that
 * mask is to be restored then, and signals are blocked again. A second signal would replace the
 * held one.
 */
static void held_block_again(struct thread *th, struct held *held)
{
	uint64_t mask;
	if (!held->is_quiet || ptrace_get_sigmask(th->tid, &mask) != 0 ||
	    (mask | SIGNALS_UNBLOCKABLE) == ~SIGTRAP_BIT)
		return;
	held->is_quiet = false;
	held_block(th, held);
}

/* Before the first step: the stop from which @th is taken. */
static void held_keep(struct thread *th, struct held *held)
{
	held->has_info = th->held_signal && ptrace_get_siginfo(th->tid, &held->info) == 0;
}

/*
 * The kernel takes a fault from before first, though it is blocked, if SIGTRAP is pending, too. The
 * thread repeats its instruction, and with it the fault if there is still reason for one.
 */
static bool is_fault(const struct thread *th, int sig)
{
	siginfo_t info;
	return (sig == SIGSEGV || sig == SIGBUS) && ptrace_get_siginfo(th->tid, &info) == 0 &&
	       info.si_code > 0 && info.si_code != SI_KERNEL;
}

/* @th has stopped for @sig. Only SIGTRAP and its own faults are not blocked. */
static void held_take(struct thread *th, int sig, struct held *held)
{
	if (is_fault(th, sig))
		return;
	th->held_signal = sig;
	held_keep(th, held);
	held_block(th, held);
}

/* After the last step, which must be a stop for a signal if one is held. */
static void held_give(struct thread *th, const struct held *held)
{
	if (th->held_signal && held->has_info)
		ptrace_set_siginfo(th->tid, &held->info);
}

/* The vdso is searched first: all programs have one. */

static taddr_t search_text(const struct address_space *s, const struct arch *arch, taddr_t start,
			   taddr_t end)
{
	enum { CHUNK = 65536 };
	_cleanup_free_ uint8_t *buf = xmalloc(CHUNK);
	for (taddr_t at = start; at < end; at += CHUNK - 8) {
		ssize_t n = space_read_some(s, at, buf, MIN((uint64_t)CHUNK, end - at));
		if (n < (ssize_t)arch->syscall_insn_size)
			continue;
		uint8_t *p = memmem(buf, (size_t)n, arch->syscall_insn, arch->syscall_insn_size);
		if (p)
			return at + (taddr_t)(p - buf);
	}
	return 0;
}

/* Fills s->syscalls.insn. 0, or -ENOEXEC if there is none. */
static int syscall_insn_find(struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count && !s->syscalls.insn; i++) {
		if (s->modules.data[i]->is_vdso)
			s->syscalls.insn = search_text(s, t->arch, s->modules.data[i]->start,
						      s->modules.data[i]->end);
	}
	for (size_t i = 0; i < s->modules.count && !s->syscalls.insn; i++)
		s->syscalls.insn =
			search_text(s, t->arch, s->modules.data[i]->start, s->modules.data[i]->end);
	return s->syscalls.insn ? 0 : -ENOEXEC;
}

/*
 * System calls that are repeated. Some return -EINTR after a mere stop (signal(7), "Interruption of
 * system calls and library functions by stop signals"), and after a signal that the program
 * ignores: without a tracer it would not have been sent. The program must not see that. A call that
 * has a timeout waits for all of it again: only after stops, which are few. Ignored signals may
 * come so often that it would wait for ever.
 *
 * A signal that the program handles may be pending then, too. Its stop comes before the call is
 * repeated, which returns -EINTR after all.
 */

static const struct arch_stopped_call *find_call(const struct arch *arch, uint64_t nr)
{
	const struct arch_stopped_call *c = arch->stopped_calls;

	while (c->nr >= 0 && c->nr != (long)nr)
		c++;
	return c->nr >= 0 ? c : NULL;
}

static bool is_syscall_at(const struct target *t, const struct thread *th, taddr_t at)
{
	uint8_t code[sizeof(t->arch->syscall_insn)];
	size_t size = t->arch->syscall_insn_size;
	return space_read(th->process->space, at, code, size) == 0 &&
	       memcmp(code, t->arch->syscall_insn, size) == 0;
}

/* The only epoll file of @th's process. -ENOENT: it has none, or several. */
static int find_epoll(const struct thread *th, uint64_t *fd_out)
{
	char name[64], target[32];
	uint64_t fd = 0;
	unsigned count = 0;
	snprintf(name, sizeof(name), "/proc/%d/fd", (int)th->tid);
	DIR *dir = opendir(name);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
			fd = strtoul(e->d_name, NULL, 10);
			count++;
		}
	}
	if (dir)
		closedir(dir);
	if (count != 1)
		return -ENOENT;
	*fd_out = fd;
	return 0;
}

/*
 * Whether @regs, after -EINTR, are those with which @th was sent to repeat a call: all but the
 * result are compared. It entered the call after it was last looked at, then.
 */
static bool has_repeated(const struct arch *arch, const struct thread *th,
			 const struct arch_regs *regs)
{
	if (!th->repeated)
		return false;
	struct arch_regs sent = *th->repeated;
	sent.word[arch->pc] += arch->syscall_insn_size;
	sent.word[arch->syscall_ret] = regs->word[arch->syscall_ret];
	sent.word[arch->syscall_nr] = regs->word[arch->syscall_nr];
	return memcmp(&sent, regs, sizeof(sent)) == 0;
}

/*
 * Where the kernel hides restarts, a result replaces the first argument. Makes it again what it was
 * when @th was seen waiting in the call, or when the call was repeated before; or, if it has begun
 * to wait between the look at it and the interrupt, the file that it must be. -ENOENT: not known;
 * the program sees the EINTR.
 */
static int restore_first(const struct target *t, const struct thread *th, struct arch_regs *regs)
{
	const struct arch *arch = t->arch;
	const struct waiting_call *w = &th->waiting;
	uint64_t number = regs->word[arch->syscall_insn_nr], first;
	int rc = 0;

	if (w->pc == regs->word[arch->pc] && w->sp == regs->word[arch->sp] &&
	    w->number == (long)number)
		first = w->first;
	else if (has_repeated(arch, th, regs))
		first = th->repeated->word[arch->syscall_arg[0]];
	else if (number == SYS_epoll_pwait || number == SYS_epoll_pwait2)
		rc = find_epoll(th, &first);
	else
		rc = -ENOENT;
	if (rc == 0)
		regs->word[arch->syscall_arg[0]] = first;
	return rc;
}

/* The call that @th has just left with -EINTR; NULL: none that can be repeated. */
static const struct arch_stopped_call *interrupted_call(const struct target *t,
							const struct thread *th,
							const struct arch_regs *regs)
{
	const struct arch *arch = t->arch;
	bool is_hidden = arch->hides_restart;

	if ((int64_t)regs->word[arch->syscall_ret] != -EINTR ||
	    (is_hidden && !is_syscall_at(t, th, regs->word[arch->pc] - arch->syscall_insn_size)))
		return NULL;
	return find_call(arch, regs->word[is_hidden ? arch->syscall_insn_nr : arch->syscall_nr]);
}

static void repeat_call(const struct target *t, struct thread *th, struct arch_regs *regs)
{
	const struct arch *arch = t->arch;

	if (!arch->hides_restart)
		regs->word[arch->syscall_insn_nr] = regs->word[arch->syscall_nr];
	else if (restore_first(t, th, regs) != 0)
		return;
	regs->word[arch->syscall_nr] = (uint64_t)-1;
	regs->word[arch->pc] -= arch->syscall_insn_size;
	if (ptrace_set_regs(th->tid, regs) != 0)
		return;
	if (!th->repeated)
		th->repeated = xmalloc(sizeof(*th->repeated));
	*th->repeated = *regs;
}

void inject_restart_interrupted(struct target *t, struct thread *th)
{
	struct arch_regs regs;

	if (ptrace_get_regs(th->tid, &regs) == 0 && interrupted_call(t, th, &regs))
		repeat_call(t, th, &regs);
}

/* Whether nothing happens when @sig arrives. */
static bool is_ignored(const struct proc_status *st, int sig)
{
	const uint64_t by_default = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGURG) |
				    SIGNAL_BIT(SIGWINCH) | SIGNAL_BIT(SIGCONT);

	return SIGNAL_BIT(sig) & (st->ignored | (by_default & ~st->caught));
}

static uint64_t argument(const struct arch *arch, const struct arch_regs *regs, uint8_t number)
{
	return number ? regs->word[arch->syscall_arg[number - 1]] : 0;
}

/* With a mask of its own an ignored signal may have been sent before: the call ends then. */
static bool waits_for_ever(const struct arch *arch, const struct arch_regs *regs,
			   const struct arch_stopped_call *call)
{
	uint64_t time = argument(arch, regs, call->time_arg);

	if (argument(arch, regs, call->mask_arg))
		return false;
	return call->timeout == TIMEOUT_NEVER || (call->timeout == TIMEOUT_POINTER && !time) ||
	       (call->timeout == TIMEOUT_MS && (int32_t)time < 0);
}

void inject_note_signal(struct target *t, struct thread *th, int sig)
{
	const struct arch *arch = t->arch;
	struct arch_regs regs;
	struct proc_status st;

	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	const struct arch_stopped_call *call = interrupted_call(t, th, &regs);
	const struct arch_regs *sent = th->repeated;
	bool is_repeated =
		sent && regs.word[arch->pc] == sent->word[arch->pc] &&
		regs.word[arch->syscall_arg[0]] == sent->word[arch->syscall_arg[0]] &&
		find_call(arch, regs.word[arch->syscall_insn_nr]);

	if ((!call && !is_repeated) || proc_status_read(th->tid, &st) != 0)
		return;
	if (is_repeated && st.caught & SIGNAL_BIT(sig)) {
		regs.word[arch->syscall_ret] = (uint64_t)-EINTR;
		regs.word[arch->pc] += arch->syscall_insn_size;
		ptrace_set_regs(th->tid, &regs);
		free(th->repeated);
		th->repeated = NULL;
	} else if (call && is_ignored(&st, sig) && waits_for_ever(arch, &regs, call)) {
		repeat_call(t, th, &regs);
	}
}

/*
 * System calls in the target, made by one of its stopped threads.
 *
 * If the space has a trap handler: by code written into unused bytes of its text, which also
 * completes without a tracer (arch/trap_handler.h). Otherwise:
 *
 * The thread's pc is set to an existing system call instruction of its own text, which is
 * single-stepped; nothing is written to its memory. Its registers are restored, including the
 * number of a system call that it may have been stopped in, so that the kernel restarts that one.
 * Meanwhile the mask holds back signals; other stops (a group stop, a pending interrupt) are
 * remembered.
 *
 * A signal that stops the process is never held: SIGCONT cancels it only until the thread is
 * resumed with it, or stops for something else (JOBCTL_STOP_DEQUEUED in the kernel). So it is
 * delivered at once, and the thread works within the group stop (thread_note_stop).
 */

/* The cause of a stop for SIGTRAP, by si_code (siginfo_t(3type)). */
enum trap_cause {
	CAUSE_STEP,
	CAUSE_BREAKPOINT, /* hit before it was stopped for us */
	CAUSE_SENT,    /* sent by a process */
};

/* Consumes the signal of a breakpoint: restore_trap_signal makes the thread hit it again. */
static enum trap_cause trap_cause(struct thread *th)
{
	siginfo_t info;
	if (ptrace_get_siginfo(th->tid, &info) != 0)
		return CAUSE_STEP;
	if (ptrace_is_call_step(&info))
		return CAUSE_STEP;
	if (info.si_code <= 0)
		return CAUSE_SENT;
	if (info.si_code != arch_native->trap_code)
		return CAUSE_STEP;
	th->hit_trap = true;
	return CAUSE_BREAKPOINT;
}

static void restore_trap_signal(struct target *t, struct thread *th, struct arch_regs *regs)
{
	if (th->hit_trap)
		regs->word[t->arch->pc] -= t->arch->trap_pc_offset;
	th->hit_trap = false;
}

/*
 * Waits for a stop or the end of @th and consumes it. 0; -ESRCH: it died, which is reported
 * later.
 */
static int await_stop(struct thread *th, int *status_out)
{
	for (;;) {
		pid_t got = waitpid(th->tid, status_out, __WALL | WNOHANG);
		if (got == th->tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		if (!thread_wait_for_news(th))
			return -ESRCH;
	}
}

/* The signal of a stop that the next step passes on, 0 = none: SIGSTOP, which cannot be masked. */
static int signal_passed_on(struct stop stop)
{
	return stop.kind == STOP_SIGNAL && stop.value == SIGSTOP ? SIGSTOP : 0;
}

/* Whether @stop is the end of @th, or just before it: it is handled later then. */
static bool note_end(struct target *t, struct thread *th, struct stop stop, int status)
{
	if (stop.kind != STOP_EXITED && stop.kind != STOP_KILLED && stop.kind != STOP_EXIT)
		return false;
	thread_end_later(t, th, status);
	return true;
}

/* Waits for the next stop of @th, which was resumed. 0; -ESRCH: it died, or is about to. */
static int next_stop(struct target *t, struct thread *th, struct stop *out)
{
	int status = 0, rc = await_stop(th, &status);
	if (rc != 0)
		return rc;
	*out = stop_decode(status);
	thread_note_stop(th, out->kind);
	return note_end(t, th, *out, status) ? -ESRCH : 0;
}

/* Steps @th over the instruction. 0; -ESRCH if the thread died. */
static int step_once(struct target *t, struct thread *th, struct held *held)
{
	int sig = 0;
	for (int tries = 0; tries < 16; tries++) {
		struct stop stop;
		int rc = ptrace_step(th->tid, sig);
		if (rc == 0)
			rc = next_stop(t, th, &stop);
		if (rc != 0)
			return rc;
		enum trap_cause cause = CAUSE_SENT;
		if (stop.kind == STOP_SIGNAL && stop.value == SIGTRAP)
			cause = trap_cause(th);
		if (cause == CAUSE_STEP)
			return 0;
		sig = signal_passed_on(stop);
		if (stop.kind == STOP_SIGNAL && cause == CAUSE_SENT && !sig)
			held_take(th, stop.value, held);
	}
	return -EAGAIN;
}

static bool is_caught(const struct thread *th, int sig)
{
	struct proc_status st;
	return proc_status_read(th->tid, &st) == 0 && st.caught & SIGNAL_BIT(sig);
}

/* A held signal that stops the process is delivered first. */
static void settle_stopping(struct target *t, struct thread *th)
{
	int sig = th->held_signal;
	if (stop_is_stopping(sig) && (sig == SIGSTOP || !is_caught(th, sig)))
		inject_drain_sigtrap(t, th);
}

static bool blocks_trap(const struct thread *th)
{
	uint64_t mask;
	return ptrace_get_sigmask(th->tid, &mask) == 0 && mask & SIGTRAP_BIT;
}

/*
 * The first signal of @th is held until end_quiet; only then are the others blocked. If ptmem dies,
 * all threads and programs that @th creates inherit a mask that ptmem changed. A blocked SIGTRAP is
 * unblocked at once: otherwise the first step would do so permanently, and reset its handler.
 */
static void begin_quiet(struct target *t, struct thread *th, struct held *held)
{
	settle_stopping(t, th);
	*held = (struct held){.blocks = true};
	held_keep(th, held);
	if (th->held_signal || blocks_trap(th))
		held_block(th, held);
}

static void end_quiet(struct thread *th, const struct held *held)
{
	held_give(th, held);
	th->hit_trap = false; /* in our pages, where continuing after the trap is correct */
	if (!held->is_quiet)
		return;
	ptrace_set_sigmask(th->tid, held->mask);
	journal_note_mask(th->process->space, 0, 0);
}

int inject_step_until(struct target *t, struct thread *th, bool (*is_there)(void *ctx, taddr_t pc),
		      void *ctx, unsigned max_steps)
{
	struct arch_regs regs;
	struct held held;
	int rc = ptrace_get_regs(th->tid, &regs);
	if (rc != 0 || is_there(ctx, regs.word[t->arch->pc]))
		return rc;
	begin_quiet(t, th, &held);
	for (unsigned i = 0; rc == 0; i++) {
		rc = ptrace_get_regs(th->tid, &regs);
		if (rc != 0 || is_there(ctx, regs.word[t->arch->pc]))
			break;
		rc = i < max_steps ? step_once(t, th, &held) : -ETIMEDOUT;
		if (rc == -ESRCH)
			return rc;
		held_block_again(th, &held);
	}
	end_quiet(th, &held);
	return rc;
}

/* The way of a thread to @to; @last: where it was seen before. */
struct way_out {
	struct target *t;
	struct thread *th;
	taddr_t to, last;
	unsigned seen, repeats;
};

/* where the thread begins is seen twice before the first step */
#define REPEATS_MAX 3u

static bool ends_way(void *ctx, taddr_t pc)
{
	struct way_out *w = ctx;

	w->repeats = pc == w->last ? w->repeats + 1 : 0;
	w->last = pc;
	w->seen++;
	return pc == w->to || w->repeats == REPEATS_MAX || is_syscall_at(w->t, w->th, pc);
}

int inject_step_to(struct target *t, struct thread *th, taddr_t pc, unsigned max_steps,
		   uint32_t *steps)
{
	struct way_out w = {.t = t, .th = th, .to = pc};
	struct arch_regs regs;
	int rc = ptrace_get_regs(th->tid, &regs);

	if (rc == 0 && (int64_t)regs.word[t->arch->syscall_nr] >= 0)
		rc = -EAGAIN; /* it may repeat the call */
	if (rc == 0)
		rc = inject_step_until(t, th, ends_way, &w, max_steps);
	*steps += w.seen - MIN(w.seen, 2u);
	return rc == 0 && w.last != pc ? -EAGAIN : rc;
}

#define RUN_MS 2000u /* much more than any pad takes, for a busy machine */

/*
 * Like await_stop, but does not consume the stop. If it does not come, @th is interrupted:
 * is_late.
 */
static int peek_stop(struct thread *th, int *status, bool *is_late)
{
	for (unsigned ms = 0;; ms += 5) {
		siginfo_t info = {0};
		if (waitid(P_PID, (id_t)th->tid, &info,
			   WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL) != 0 &&
		    errno != EINTR)
			return -ESRCH;
		if (info.si_pid == th->tid) {
			*status = info.si_status << 8 | 0x7f; /* in waitpid's format */
			bool is_stop = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
			return is_stop ? 0 : await_stop(th, status);
		}
		if (ms == RUN_MS && ptrace_interrupt(th->tid) == 0)
			*is_late = true;
		if (!thread_wait_for_news(th))
			return -ESRCH;
	}
}

/* At a breakpoint: sets the pc of @th to the address that @find returns. */
static bool redirect(struct target *t, struct thread *th, inject_find_fn *find, void *ctx)
{
	struct arch_regs regs;
	taddr_t to = 0;
	if (trap_cause(th) != CAUSE_BREAKPOINT || ptrace_get_regs(th->tid, &regs) != 0)
		return false;
	to = find(ctx, regs.word[t->arch->pc] - t->arch->trap_pc_offset);
	return to && ptrace_set_word(th->tid, t->arch->pc, to) == 0;
}

/* Runs to a breakpoint that @find knows. Consumes the stop only after setting the pc: if ptmem dies
 * before, the signal is still delivered, and the trap handler does the same. */
static int run_to_trap(struct target *t, struct thread *th, inject_find_fn *find, void *ctx,
		       struct held *held)
{
	bool is_late = false;
	int sig = 0;
	for (int tries = 0; tries < 16 && !is_late; tries++) {
		int status = 0, rc = thread_continue(t, th, sig, false);
		if (rc == 0)
			rc = peek_stop(th, &status, &is_late);
		if (rc != 0)
			return rc;
		struct stop stop = stop_decode(status);
		thread_note_stop(th, stop.kind);
		if (stop.kind == STOP_EXITED || stop.kind == STOP_KILLED ||
		    stop.kind == STOP_EXIT) {
			if (stop.kind == STOP_EXIT)
				thread_consume_stop(t, th);
			else
				thread_end_later(t, th, status);
			return -ESRCH;
		}
		bool is_there = stop.kind == STOP_SIGNAL && stop.value == SIGTRAP &&
				redirect(t, th, find, ctx);
		thread_consume_stop(t, th);
		if (th->is_exiting)
			return -ESRCH;
		if (is_there)
			return 0;
		sig = signal_passed_on(stop);
		if (stop.kind == STOP_SIGNAL && !sig && !step_is_left_over(t, th))
			held_take(th, stop.value, held);
	}
	return -ETIMEDOUT;
}

int inject_run_to_trap(struct target *t, struct thread *th, inject_find_fn *find, void *ctx)
{
	struct held held;
	begin_quiet(t, th, &held);
	int rc = run_to_trap(t, th, find, ctx, &held);
	if (rc != -ESRCH)
		end_quiet(th, &held);
	return rc;
}

/*
 * Lets @th run, with @sig, until a stop of @kind (or -ESRCH). Signals are blocked, or cannot arrive
 * before it; one that does is a fault of the thread itself.
 */
static int run_until(struct target *t, struct thread *th, enum stop_kind kind, int sig,
		     struct held *held)
{
	for (int tries = 0; tries < 16; tries++) {
		struct stop stop;
		int rc = thread_continue(t, th, sig, kind == STOP_SYSCALL);
		if (rc == 0)
			rc = next_stop(t, th, &stop);
		if (rc != 0)
			return rc;
		if (stop.kind == kind || (stop.kind == STOP_GROUP && kind == STOP_INTERRUPT))
			return 0;
		sig = signal_passed_on(stop);
		if (stop.kind == STOP_SIGNAL && !sig &&
		    !(stop.value == SIGTRAP &&
		      (trap_cause(th) == CAUSE_BREAKPOINT || step_is_left_over(t, th))))
			held_take(th, stop.value, held);
	}
	return -EAGAIN;
}

/*
 * Returns to a stop after which the kernel restarts interrupted system calls, before the thread
 * runs. If a signal is to be delivered, this must be a stop for a signal.
 */
static int stop_again(struct target *t, struct thread *th, struct held *held)
{
	int rc = 0;
	if (!th->held_signal) {
		rc = ptrace_interrupt(th->tid);
		if (rc == 0)
			rc = run_until(t, th, STOP_INTERRUPT, 0, held);
	}
	return rc == 0 && th->held_signal ? step_once(t, th, held) : rc;
}

/* Whether its stop is for a SIGTRAP by a step or a breakpoint: not an event, not a system call. */
static bool is_at_trap(const struct thread *th)
{
	siginfo_t info;
	return ptrace_get_siginfo(th->tid, &info) == 0 && info.si_signo == SIGTRAP &&
	       ((info.si_code > 0 && info.si_code <= SI_KERNEL) || ptrace_is_call_step(&info));
}

/*
 * A SIGTRAP that is pending at another stop: the thread was interrupted just after a breakpoint or
 * a step. Lets @th run to the stop for it, and holds the signal if it is the program's. 0; -ESRCH:
 * it died.
 */
static int take_pending_trap(struct target *t, struct thread *th)
{
	struct stop stop;
	int rc = thread_continue(t, th, 0, false);
	if (rc == 0)
		rc = next_stop(t, th, &stop);
	if (rc == 0 && stop.kind == STOP_SIGNAL && !step_is_left_over(t, th))
		th->held_signal = stop.value;
	return rc;
}

int inject_drain_sigtrap(struct target *t, struct thread *th)
{
	int rc = 0;
	/* one that it blocks is its own, and would not be reported */
	if (!th->held_signal && ptrace_has_pending_trap(th->tid) && !blocks_trap(th))
		rc = take_pending_trap(t, th);
	int sig = th->held_signal;
	struct held held = {0};
	if (rc != 0 || (!sig && !is_at_trap(th)))
		return rc;
	th->held_signal = 0;
	rc = ptrace_interrupt(th->tid);
	return rc == 0 ? run_until(t, th, STOP_INTERRUPT, sig, &held) : rc;
}

/* A system call that a thread makes for ptmem, and what it goes back to. */
struct injection {
	struct arch_regs saved;
	struct held held;
	uint64_t mask; /* its signal mask; the journal has it, too, until the end */
};

/* The call was made unless @rc is an error, then *regs_out are its registers. @rc, or an error. */
static int end_injection(struct target *t, struct thread *th, struct injection *n,
			 struct arch_regs *regs_out, int rc)
{
	struct arch_regs now;
	if (rc == 0 && (rc = ptrace_get_regs(th->tid, &now)) == 0)
		*regs_out = now;
	if (rc == 0)
		rc = stop_again(t, th, &n->held);
	if (rc == -ESRCH)
		return rc;
	held_give(th, &n->held);
	ptrace_set_sigmask(th->tid, n->mask);
	restore_trap_signal(t, th, &n->saved);
	ptrace_set_regs(th->tid, &n->saved);
	journal_note_mask(th->process->space, 0, 0);
	return rc;
}

/*
 * Uses code of ours that makes the call and then restores the thread's state, even if ptmem dies.
 * So registers are changed first, then the mask, and restored in reverse order.
 */
static int inject_guarded(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t at,
			  uint64_t mask)
{
	struct address_space *s = th->process->space;
	struct injection n = {.mask = mask};
	uint8_t code[INJECTION_SIZE];
	held_keep(th, &n.held);
	int rc = ptrace_get_regs(th->tid, &n.saved);
	if (rc != 0)
		return rc;
	if (!arch_make_injection(&n.saved, at, mask, code))
		return -ERANGE;
	rc = space_write(s, at, code, sizeof(code));
	regs->word[t->arch->pc] = at;
	/* a guardian that steps it out of the code must not keep the current mask */
	journal_note_mask(s, th->tid, mask);
	if (rc == 0)
		rc = ptrace_set_regs(th->tid, regs);
	if (rc != 0)
		return rc;
	rc = ptrace_set_sigmask(th->tid, ~SIGTRAP_BIT);
	for (int i = 0; i < 2 && rc == 0; i++) /* its entry and its end */
		rc = run_until(t, th, STOP_SYSCALL, 0, &n.held);
	return end_injection(t, th, &n, regs, rc);
}

/*
 * The same for a thread that is at a system call instruction, to make a call or to repeat one,
 * where the kernel hides restarts: it goes to the entry of that call, and makes ours instead. Then
 * it is back at the instruction, with the number that the call had at the entry. Without a guard
 * @at is 0.
 */
static int inject_at_entry(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t at,
			   uint64_t mask)
{
	const struct arch *arch = t->arch;
	struct address_space *s = th->process->space;
	struct injection n = {.mask = mask};
	struct arch_regs entry;
	uint8_t code[INJECTION_SIZE];
	int rc = ptrace_get_regs(th->tid, &n.saved);
	journal_note_mask(s, th->tid, mask);
	if (rc == 0)
		rc = ptrace_set_sigmask(th->tid, ~SIGTRAP_BIT);
	if (rc == 0)
		rc = run_until(t, th, STOP_SYSCALL, 0, &n.held);
	if (rc == 0)
		rc = ptrace_get_regs(th->tid, &entry);
	if (rc != 0)
		return rc;
	n.saved.word[arch->syscall_insn_nr] = entry.word[arch->syscall_insn_nr];
	if (at && arch_make_injection(&n.saved, at, mask, code))
		rc = space_write(s, at, code, sizeof(code));
	regs->word[arch->syscall_nr] = regs->word[arch->syscall_insn_nr];
	regs->word[arch->pc] = (at ? at : s->syscalls.insn) + arch->syscall_insn_size;
	if (rc == 0)
		rc = ptrace_set_regs(th->tid, regs);
	if (rc == 0)
		rc = run_until(t, th, STOP_SYSCALL, 0, &n.held);
	return end_injection(t, th, &n, regs, rc);
}

/*
 * Where the kernel hides restarts it does so after the stop at the exit of the call, if @th, with
 * *regs, is there: it goes on to the next stop.
 */
static int pass_exit(struct target *t, struct thread *th, struct arch_regs *regs)
{
	enum { RESTARTS_FIRST = -516, RESTARTS_LAST = -512 }; /* linux/errno.h */
	const struct arch *arch = t->arch;
	int64_t result = (int64_t)regs->word[arch->syscall_ret];
	struct held held = {0};
	if (!arch->hides_restart || (int64_t)regs->word[arch->syscall_nr] < 0 ||
	    result < RESTARTS_FIRST || result > RESTARTS_LAST)
		return 0;
	int rc = ptrace_interrupt(th->tid);
	if (rc == 0)
		rc = run_until(t, th, STOP_INTERRUPT, 0, &held);
	return rc == 0 ? ptrace_get_regs(th->tid, regs) : rc;
}

/* Where inject_guarded can put its code, for a thread with @saved: 0 if nowhere. */
static taddr_t find_guarded(struct address_space *s, const struct arch_regs *saved)
{
	uint8_t code[INJECTION_SIZE];
	taddr_t at = 0;
	if (journal_find_injection(s, &at) != 0 || !arch_make_injection(saved, at, 0, code))
		return 0;
	return at;
}

int inject_syscall(struct target *t, struct thread *th, long nr, const uint64_t args[6],
		   int64_t *result_out)
{
	const struct arch *arch = t->arch;
	struct address_space *s = th->process->space;
	struct arch_regs saved, regs;
	uint64_t mask = 0;
	taddr_t at = 0;
	CHECK(injected_calls_has(nr, args));
	settle_stopping(t, th);
	int rc = ptrace_get_regs(th->tid, &saved);
	if (rc == 0)
		rc = pass_exit(t, th, &saved);
	if (rc == 0)
		at = find_guarded(s, &saved);
	if (rc == 0 && !at && !s->syscalls.insn)
		rc = syscall_insn_find(t, s);
	if (rc == 0)
		rc = ptrace_get_sigmask(th->tid, &mask);
	if (rc != 0)
		return rc;
	regs = saved;
	regs.word[arch->pc] = s->syscalls.insn;
	regs.word[arch->syscall_nr] = (uint64_t)-1; /* not in a system call: nothing to restart */
	regs.word[arch->syscall_insn_nr] = (uint64_t)nr;
	for (int i = 0; i < 6; i++)
		regs.word[arch->syscall_arg[i]] = args[i];
	bool is_at_call = arch->hides_restart && !th->held_signal &&
			  is_syscall_at(t, th, saved.word[arch->pc]);
	if (at || is_at_call) {
		rc = is_at_call ? inject_at_entry(t, th, &regs, at, mask) :
				  inject_guarded(t, th, &regs, at, mask);
		if (rc == 0)
			*result_out = (int64_t)regs.word[arch->syscall_ret];
		return rc;
	}
	struct held held = {0};
	held_keep(th, &held);
	rc = ptrace_set_sigmask(th->tid, ~SIGTRAP_BIT); /* as in held_block */
	if (rc == 0)
		rc = ptrace_set_regs(th->tid, &regs);
	if (rc == 0)
		rc = step_once(t, th, &held);
	if (rc == -ESRCH)
		return rc;
	int64_t result = -EIO;
	if (rc == 0 && ptrace_get_regs(th->tid, &regs) == 0)
		result = (int64_t)regs.word[arch->syscall_ret];
	held_give(th, &held);
	restore_trap_signal(t, th, &saved);
	ptrace_set_regs(th->tid, &saved);
	ptrace_set_sigmask(th->tid, mask);
	if (rc == 0)
		*result_out = result;
	return rc;
}

#define ADDRESSES (1ull << ARCH_ADDRESS_BITS)
#define PLANNED (1ull << 30) /* more than the memory of most programs' pads */

/*
 * Where to map @size bytes: after our last map, or far from all others. (Next to others, the
 * kernel would put the program's next map there once the program has unmapped what it does not
 * know, while a thread may still be in a pad.) 0: anywhere.
 */
static taddr_t choose_address(struct address_space *s, uint64_t size)
{
	struct maps maps;
	taddr_t at = s->own.next, first = s->own.first;
	if (!at && first && maps_query_free(s->files.maps, first, size) == 1)
		return first;
	if (!at && maps_read(s->processes.reader, &maps) == 0) {
		if (maps_find_gap(&maps, ADDRESSES / 2, ADDRESSES / 2, size, &at) != 0)
			at = 0;
		maps_deinit(&maps);
	}
	return at;
}

void inject_plan_mmap(struct address_space *s, const struct maps *maps)
{
	if (!s->own.first)
		maps_find_gap(maps, ADDRESSES / 2, ADDRESSES / 2, PLANNED, &s->own.first);
}

int inject_mmap(struct target *t, struct thread *th, const uint64_t args[6], int64_t *result_out)
{
	struct address_space *s = th->process->space;
	uint64_t size = ROUND_UP(args[1], (uint64_t)PAGE_SIZE_MIN), placed[6];
	bool is_anywhere = !args[0];
	int64_t result = -EIO;
	memcpy(placed, args, sizeof(placed));
	if (is_anywhere)
		placed[0] = choose_address(s, size);
	if (t->sink.will_map)
		t->sink.will_map(t->sink.ctx, s);
	int rc = inject_syscall(t, th, SYS_mmap, placed, &result);
	if (rc != 0)
		return rc;
	*result_out = result;
	if (result >= 0)
		s->own.mapped += size;
	/* a page lies between two maps, which would become one otherwise */
	if (is_anywhere)
		s->own.next = result == (int64_t)placed[0] ? placed[0] + size + PAGE_SIZE_MIN : 0;
	return 0;
}
