/* Recognizes the ends of single steps of a dead ptmem. */
#include "tracee/state/step.h"

#include <signal.h>

#include "tracee/os/ptrace.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

bool step_is_left_over(const struct target *t, const struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	if (!t->recovery.is_guardian || ptrace_get_siginfo(th->tid, &info) != 0 ||
	    ptrace_get_regs(th->tid, &regs) != 0 || info.si_signo != SIGTRAP)
		return false;
	return info.si_code == SIGTRAP ||
	       (info.si_code == TRAP_TRACE &&
		!(regs.word[t->arch->flags] & t->arch->step_flag));
}
