/* Repeats system calls that a stop interrupted. */
#include "tracee/inject/restart.h"

#include <errno.h>

#include "tracee/os/ptrace.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/*
 * Some system calls return -EINTR after a mere stop (signal(7), "Interruption of system calls and
 * library functions by stop signals"). The program must not see that, so the call is repeated. A
 * signal that is really pending interrupts it again.
 */
void inject_restart_interrupted(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	const struct arch *arch = t->arch;
	if (ptrace_get_regs(th->tid, &regs) != 0 || (int64_t)regs.word[arch->syscall_ret] != -EINTR)
		return;
	for (const long *nr = arch->stop_interrupts; *nr >= 0; nr++) {
		if ((long)regs.word[arch->syscall_nr] != *nr)
			continue;
		regs.word[arch->syscall_ret] = regs.word[arch->syscall_nr];
		regs.word[arch->syscall_nr] = (uint64_t)-1;
		regs.word[arch->pc] -= arch->syscall_insn_size;
		ptrace_set_regs(th->tid, &regs);
		return;
	}
}
