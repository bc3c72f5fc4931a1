/*
 * A thread that has just entered a pad begins its call again, at the breakpoint. One that is inside
 * the function returns to the stub, which reports the result. One that is in the middle of a pad,
 * or of the recorder, cannot be helped.
 */
#include "tracee/pads/pad_retreat.h"

#include <stdio.h>

#include "base/log.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_fork.h"
#include "tracee/pads/pad_slots.h"
#include "tracee/pads/pad_thread.h"
#include "tracee/pads/pad_threads.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/journal.h"
#include "tracee/state/probe.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

static void move_pc(struct target *t, const struct address_space *s, const struct thread *th)
{
	struct arch_regs regs;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	taddr_t pc = regs.word[t->arch->pc];
	for (size_t i = 0; i < s->pads->list.count; i++) {
		const struct pad *pad = &s->pads->list.data[i];
		const struct trap *trap = &s->traps.data[s->pads->trap.data[i]];
		if (pc == pad->start)
			ptrace_set_word(th->tid, t->arch->pc, trap->addr);
		else if (pc == pad->straight)
			ptrace_set_word(th->tid, t->arch->pc, trap->stub.jump);
	}
}

/* The pad call that @th is in becomes one of a stub. */
static void hand_over_call(struct target *t, struct thread *th, struct pad_slot *slot)
{
	struct address_space *s = th->process->space;
	const struct trap *trap = pads_find_entry(s->pads, s, slot->return_to);
	struct arch_regs at_entry = {0};
	uint64_t word = 0;
	if (!trap || space_read(s, slot->return_at, &word, sizeof(word)) != 0 ||
	    word != slot->return_to || call_state_innermost(&th->calls))
		return;
	struct call *call = vec_add(&th->calls.list);
	*call = (struct call){.probe = trap->probe,
			      .sp = slot->return_at + PAD_RETURN_BELOW,
			      .return_at = slot->return_at,
			      .stub_return = trap->stub.trap};
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	at_entry.word[t->arch->sp] = call->sp;
	probe_read_call(trap->probe, t->arch, &at_entry, &call->args);
	pads_exchange_return(s->pads, s, slot->return_at, word);
}

void pads_forget_memory(struct address_space *s)
{
	journal_remove_area(s, s->own.shared);
	s->own.shared = s->own.shared_size = 0;
	for (size_t i = 0; i < s->own.areas.count; i++) {
		struct stub_area *a = &s->own.areas.data[i];
		if (!a->is_memory || !a->size)
			continue;
		journal_remove_area(s, a->start);
		own_memory_give_up(a);
	}
}

void pads_retreat(struct target *t, struct address_space *s)
{
	struct thread *th;
	if (!s->pads || s->pads->list.count == 0)
		return; /* it is the second time */
	pads_catch_up(t, s);
	pad_memory_set_off(&s->pads->memory, true);
	pads_put_breakpoints(t, s);
	for_each_thread_in(t, s, th) {
		struct pad_slot *slot = pads_slot(th);
		if (th->is_exiting)
			continue;
		move_pc(t, s, th);
		if (slot && slot->return_at)
			hand_over_call(t, th, slot);
		if (slot)
			pad_slots_remove(&s->pads->memory, slot->thread_pointer);
		pad_thread(th)->pointer = 0;
	}
	s->pads->list.count = s->pads->trap.count = 0;
	s->pads->recorder_size = 0;
	s->promotion.is_impossible = true;
	snprintf(s->promotion.why, sizeof(s->promotion.why),
		 "the program uses the memory of pads itself");
	log_info("process %d is on breakpoints from now on: %s", s->processes.pid,
		 s->promotion.why);
}
