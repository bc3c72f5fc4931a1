/*
 * Dispatch of stops at breakpoints.
 */
#include "tracee/calls/trap.h"

#include <signal.h>

#include "tracee/os/ptrace.h"
#include "tracee/state/journal.h"
#include "tracee/state/pad_hooks.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/step.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

/* Number of stops after which a space gets pads. */
#define HOT_HITS 16

static void count_hit(struct target *t, struct address_space *s, struct trap *trap)
{
	uint32_t hot = t->options.probes.promote_at_once ? 1 : HOT_HITS;
	trap->hits++;
	if (!probe_may_be_hot(trap->probe) || trap->is_cold || !s->watch.is_ready ||
	    ++s->promotion.hits < hot)
		return;
	s->promotion.hits = 0;
	if (s->watch.is_profiled && !s->promotion.is_impossible && !t->options.probes.no_promotion)
		t->loop.promote = s;
}

/*
 * Handles a breakpoint that a dead ptmem left at @addr. If it was removed meanwhile, the original
 * instruction is there.
 */
static bool serve_for_guardian(struct target *t, struct thread *th, taddr_t addr)
{
	struct address_space *s = th->process->space;
	taddr_t to = journal_resume_address(s, addr);
	uint8_t first;
	if (!to)
		return journal_has_moved(s, addr + t->arch->trap_pc_offset);
	if (space_read(s, addr, &first, 1) == 0 && first != t->arch->trap[0])
		to = addr;
	ptrace_set_word(th->tid, t->arch->pc, to);
	return true;
}

static enum trap_answer serve(struct target *t, struct thread *th, struct trap *trap,
			      struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	t->stats.trap_stops++;
	s->pauses.trap_stops++;
	t->hooks.restore_mask(t, th);
	if (trap->kind == TRAP_ENTRY || trap->kind == TRAP_RETURN)
		t->hooks.pads->catch_up(t, s);
	if (trap->kind == TRAP_ENTRY)
		count_hit(t, s, trap);
	return trap->serve(t, th, trap, regs);
}

enum trap_answer trap_serve(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return TRAP_RESUME; /* gone: its end is reported later */
	if (ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0)
		return TRAP_NOT_OURS;
	taddr_t addr = regs.word[t->arch->pc] - t->arch->trap_pc_offset;
	if (step_is_left_over(t, th))
		return TRAP_RESUME;
	if (t->recovery.is_guardian)
		return serve_for_guardian(t, th, addr) ? TRAP_RESUME : TRAP_NOT_OURS;
	struct trap *trap = space_trap_find(th->process->space, addr);
	return trap ? serve(t, th, trap, &regs) : TRAP_NOT_OURS;
}
