/* Which pads read the counter. */
#include "tracee/pads/pad_ticks.h"

#include <signal.h>

#include "base/log.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

void pads_set_gap(const struct target *t, struct address_space *s)
{
	uint64_t gap = s->heap.sampling ? 0 : tick_clock_ticks(&t->ticks, RING_GAP_NS);

	pad_memory_set_gap(&s->pads->memory, gap);
}

bool pads_skip_ticks(struct target *t, struct thread *th)
{
	struct pads *p = th->process->space->pads;
	struct recorder_image image = arch_recorder_image();
	struct arch_regs regs;
	siginfo_t info;

	if (!p || ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0 ||
	    ptrace_get_regs(th->tid, &regs) != 0 ||
	    regs.word[t->arch->pc] != p->recorder + image.ticks)
		return false;
	if (!(p->memory.written.flags & PAD_NO_TICKS))
		log_verbose("process %d has disabled the CPU's counter: its events are dated when "
			    "they are read", th->process->pid);
	pad_memory_set_flags(&p->memory, p->memory.written.flags | PAD_NO_TICKS);
	ptrace_set_word(th->tid, t->arch->pc, p->recorder + image.ticks + image.ticks_size);
	thread_resume(t, th, 0);
	return true;
}

bool pads_lack_stamps(const struct target *t)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		const struct pads *p = t->processes.data[i]->space->pads;
		if (p && p->memory.written.flags & PAD_NO_TICKS)
			return true;
	}
	return false;
}
