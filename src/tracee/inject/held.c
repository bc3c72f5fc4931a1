/* Holds and blocks signals while a thread works for ptmem: held.h. */
#include "tracee/inject/held.h"

#include "tracee/os/ptrace.h"
#include "tracee/state/journal.h"
#include "tracee/state/thread.h"

#define NEVER_BLOCKED (1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1))

void held_block(struct thread *th, struct held *held)
{
	if (!held->blocks || held->is_quiet || ptrace_get_sigmask(th->tid, &held->mask) != 0)
		return;
	journal_note_mask(th->process->space, th->tid, held->mask);
	held->is_quiet = ptrace_set_sigmask(th->tid, ~SIGTRAP_BIT) == 0;
}

void held_block_again(struct thread *th, struct held *held)
{
	uint64_t mask;
	if (!held->is_quiet || ptrace_get_sigmask(th->tid, &mask) != 0 ||
	    (mask | NEVER_BLOCKED) == ~SIGTRAP_BIT)
		return;
	held->is_quiet = false;
	held_block(th, held);
}

void held_keep(struct thread *th, struct held *held)
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

void held_take(struct thread *th, int sig, struct held *held)
{
	if (is_fault(th, sig))
		return;
	th->held_signal = sig;
	held_keep(th, held);
	held_block(th, held);
}

void held_give(struct thread *th, const struct held *held)
{
	if (th->held_signal && held->has_info)
		ptrace_set_siginfo(th->tid, &held->info);
}
