/*
 * A thread that has just entered a pad begins its call again, at the breakpoint. One that is inside
 * the function returns to the stub, which reports the result. One that is in the middle of a pad,
 * or of the recorder, cannot be helped.
 */
#include "tracee/pads/pads.h"

#include <stdio.h>

#include "base/log.h"
#include "tracee/inject/inject.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/state/journal.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

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
	pads_exchange_return(t, th, s->pads, slot->return_at, word);
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

/*
 * Threads in pads or the recorder when all pads are removed run to the end of their pad, to
 * breakpoints at its exits: that takes two stops instead of hundreds of single steps. Text is
 * restored already, so a thread that hits such a breakpoint has left: it continues in the original
 * function or at its caller.
 */

/* Whether a thread whose pc is @pc will pass through an exit. */
static bool is_before_exit(const struct pads *p, taddr_t pc)
{
	if (pc - p->recorder < p->recorder_size)
		return true;
	for (size_t i = 0; i < p->list.count; i++) {
		const struct pad *pad = &p->list.data[i];
		if (pc - pad->at < pad->size)
			return pc < pad->tail;
	}
	return false;
}

/*
 * A pad retries after the trap at its entry. If the program has replaced the shared memory it would
 * retry forever, since it cannot see that recording is off; so those traps are exits, too.
 */
static void write_entry_traps(struct address_space *s, const void *insn, size_t size)
{
	for (size_t i = 0; i < s->pads->list.count; i++) {
		if (s->pads->list.data[i].entry_trap)
			space_write(s, s->pads->list.data[i].entry_trap, insn, size);
	}
}

static enum trap_answer serve_exit(struct target *t, struct thread *th, struct trap *trap,
				   struct arch_regs *regs)
{
	ptrace_set_word(th->tid, t->arch->pc, trap->stub.jump);
	return TRAP_RESUME;
}

static int put_exits(struct target *t, struct address_space *s)
{
	int rc = 0;
	write_entry_traps(s, t->arch->trap, t->arch->trap_size);
	for (size_t i = 0; i < s->pads->list.count; i++) {
		for (unsigned k = 0; k < PAD_EXITS && rc == 0; k++) {
			const struct pad_exit *e = &s->pads->list.data[i].exit[k];
			struct trap trap = {
				.kind = TRAP_PAD_EXIT, .serve = serve_exit, .addr = e->at};
			trap.stub.jump = e->to;
			if (e->at)
				rc = space_trap_put(s, t->arch, &trap);
		}
	}
	return rc;
}

static void take_exits(struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		if (s->traps.data[i].kind == TRAP_PAD_EXIT)
			space_trap_take(s, t->arch, &s->traps.data[i]);
	}
	write_entry_traps(s, t->arch->nop_insn, t->arch->trap_size);
}

static taddr_t find_exit(void *ctx, taddr_t addr)
{
	const struct trap *trap = space_trap_find(ctx, addr);
	if (trap && trap->kind == TRAP_PAD_ENTRY)
		return ((const struct address_space *)ctx)
			->pads->list.data[trap->pad - 1]
			.exit[0]
			.to;
	return trap && trap->kind == TRAP_PAD_EXIT ? trap->stub.jump : 0;
}

void pads_run_out(struct target *t, struct address_space *s)
{
	bool is_armed = false;
	struct thread *th;
	if (!s->pads)
		return;
	for_each_thread_in(t, s, th) {
		struct arch_regs regs;
		if (th->is_exiting || ptrace_get_regs(th->tid, &regs) != 0 ||
		    !is_before_exit(s->pads, regs.word[t->arch->pc]))
			continue;
		int rc = is_armed ? 0 : put_exits(t, s);
		is_armed = true;
		if (rc != 0)
			break;
		inject_run_to_trap(t, th, find_exit, s);
	}
	if (is_armed)
		take_exits(t, s);
}

void pads_disarm(struct target *t, struct address_space *s)
{
	if (!s->pads)
		return;
	pad_memory_set_off(&s->pads->memory, true);
	pads_catch_up(t, s);
}

void pads_release_threads(struct target *t, struct address_space *s)
{
	struct thread *th;
	if (!s->pads)
		return;
	for_each_thread_in(t, s, th) {
		struct pad_slot *slot = pads_slot(th);
		uint64_t word = 0;
		if (!slot || !slot->return_at ||
		    space_read(s, slot->return_at, &word, sizeof(word)) != 0)
			continue;
		if (word == pads_return_to(th, slot) && !call_state_innermost(&th->calls))
			pads_exchange_return(t, th, s->pads, slot->return_at, word);
	}
}
