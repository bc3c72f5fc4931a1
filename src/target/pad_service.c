/*
 * Serves the traps of pads: whatever they do not decide themselves (arch/pad.h says what).
 */
#include "base/log.h"
#include "target/pads_internal.h"
#include "target/ptrace.h"

static struct trap *entry_trap(struct space *s, const struct trap *trap)
{
	return &s->traps.data[s->pads->trap.data[trap->pad - 1]];
}

/* The caller's view at a leave trap, where the stack is too large for a record. */
static void serve_leave(struct target *t, struct thread *th, struct trap *trap, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	const struct probe *probe = entry_trap(s, trap)->probe;
	if (!slot || !slot->guard)
		return;
	struct arch_regs at_entry = *regs;
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	struct probe_call args;
	probe_read_call(probe, t->arch, &at_entry, &args);
	struct stack_view view;
	trap_fill_view(t, th, regs, slot->guard, &view);
	view.regs.reg[t->arch->dwarf_pc] = slot->return_pc;
	bool is_realloc = probe->kind == PROBE_REALLOC && args.block;
	struct heap_event ev = {
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC,
		.function = probe->function, .addr = slot->result, .size = args.size, .align = args.align,
		.old_addr = is_realloc ? args.block : 0, .stack = &view, .sp = t->options.stack_pointers ? slot->guard + 8 : 0,
	};
	if (s->is_profiled && s->is_ready)
		t->sink.event(t->sink.ctx, s, &ev);
}

static bool has_room(const struct pads *p)
{
	return ring_pending(&p->ring) + p->ring.position - p->ring.published < p->memory.ring_size / 2;
}

/* Which processes of @s are in a group stop, or on their way into one. */
static void find_group_stops(struct target *t, struct space *s)
{
	for (size_t i = 0; i < t->processes.count; i++)
		t->processes.data[i]->is_group_stopped = false;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th->process->space == s && th->state == THREAD_LISTENING)
			th->process->is_group_stopped = true;
	}
}

void pads_wake_waiters(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	if (!p || (!has_room(p) && !ring_has_hole(&p->ring) && !p->ring.late_count))
		return;
	find_group_stops(t, s);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		/* a hole at the read position may be the record of one who waits: once the tail moved, it
		 * may fit, and must go on however full the ring is. A group stop is complete when all
		 * threads are in it, and one that is in it may own the hole: into it, then wait again. */
		if (!th || !th->waits_for_room || th->process->space != s ||
		    (th->waited_tail == p->ring.published && !has_room(p) && !th->process->is_group_stopped))
			continue;
		th->waits_for_room = false;
		t->waiters--;
		thread_resume(t, th, 0);
	}
}

static bool serve_full(struct target *t, struct thread *th)
{
	struct space *s = th->process->space;
	t->stats.ring_full++;
	uint64_t before = th->waited_tail;
	/* no further than to half empty: the rest is read while the program runs */
	size_t n;
	do {
		n = pads_drain_some(t, s);
		ring_publish(&s->pads->ring);
	} while (n >= PADS_DRAIN_BATCH && !has_room(s->pads));
	/* the thread may have looked just before the tail moved: only who comes twice has to wait */
	th->waited_tail = s->pads->ring.published;
	return th->waited_tail != before || has_room(s->pads);
}

void pads_throw(struct thread *th)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	uint64_t word = 0;
	/* the guard stays: the catch finds it, and puts the pad back if it lies inside the call */
	if (slot && slot->guard && space_read(s, slot->guard, &word, sizeof(word)) == 0 && word == slot->guard_pc)
		space_write(s, slot->guard, &slot->return_pc, sizeof(slot->return_pc));
}

void pads_catch(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	if (!slot || !slot->guard || th->calls.count > 0)
		return;
	if (regs->word[t->arch->sp] >= slot->guard)
		slot->guard = 0;
	else
		space_write(s, slot->guard, &slot->guard_pc, sizeof(slot->guard_pc));
}

static void forget_frames(struct thread *th)
{
	struct pads *p = th->process->space->pads;
	pad_memory_reset_slot(&p->memory, th->slot);
	ring_reset_slot(&p->ring, th->slot);
}

enum pad_nesting { PAD_OUTERMOST, PAD_NESTED };

/* Decides about an entry with the guard set by a pad; a signal handler's call is outermost again. */
static enum pad_nesting decide_guard(struct target *t, struct thread *th, struct pad_slot *slot,
				     const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t word = 0;
	if (slot->reason == PAD_REASON_STALE) {
		forget_frames(th); /* left by longjmp */
		return PAD_OUTERMOST;
	}
	bool is_alive = space_read(s, slot->guard, &word, sizeof(word)) == 0 && word == slot->guard_pc;
	struct stack_view view;
	trap_fill_view(t, th, regs, sp, &view);
	if (t->sink.in_signal(t->sink.ctx, s, &view, slot->guard + 2 * sizeof(word)))
		return PAD_OUTERMOST;
	if (is_alive && sp < slot->guard)
		return PAD_NESTED;
	forget_frames(th);
	return PAD_OUTERMOST;
}

/* A call from a stack that is not the slot's: a fiber, or a handler on its own stack. */
#define BOUNDS_TRAPS_TO_MOVE 16

static bool follow_stack(struct target *t, struct thread *th, struct pad_slot *slot, taddr_t sp)
{
	taddr_t low, high;
	if (slot->guard || ++th->bounds_traps < BOUNDS_TRAPS_TO_MOVE)
		return false;
	th->bounds_traps = 0;
	th->stack_high = 0;
	if (pads_stack_bounds(th, sp, &low, &high) != 0)
		return false;
	forget_frames(th);
	slot->stack_low = low;
	slot->stack_high = high;
	return true;
}

static void resume_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc)
{
	regs->word[t->arch->pc] = pc;
	ptrace_set_word(th->tid, t->arch->pc, pc);
}

static void serve_pad_entry(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	struct space *s = th->process->space;
	const struct pad *pad = &s->pads->list.data[trap->pad - 1];
	struct trap *entry = entry_trap(s, trap);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t pointer = regs->word[t->arch->thread_pointer];
	if (th->thread_pointer != pointer) {
		/* unknown so far: next time round the pad finds its slot */
		if (pointer && !pads_slot_is_taken(th, pointer) && pads_give_slot(t, th, pointer, sp) == 0)
			return;
		trap_enter(t, th, entry, regs);
		return;
	}
	struct pad_slot *slot = pads_slot(th);
	if (entry->probe->kind == PROBE_THROW || entry->probe->kind == PROBE_CATCH) {
		trap_enter(t, th, entry, regs);
		resume_at(t, th, regs, pad->straight);
		return;
	}
	if (slot->reason == PAD_REASON_BOUNDS && follow_stack(t, th, slot, sp))
		return;
	bool by_pad = slot->guard && slot->guard_pc && th->calls.count == 0;
	if (by_pad && decide_guard(t, th, slot, regs) == PAD_NESTED) {
		t->stats.nested++;
		if (entry->probe->kind == PROBE_FREE && slot->kind != PAD_DELETE)
			trap_enter_inner_free(t, th, entry, regs);
		resume_at(t, th, regs, pad->straight);
		return;
	}
	trap_enter(t, th, entry, regs);
}

bool pads_serve(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	if (trap->kind == TRAP_PAD_FULL)
		return serve_full(t, th);
	pads_catch_up(t, th->process->space);
	if (trap->kind == TRAP_PAD_LEAVE)
		serve_leave(t, th, trap, regs);
	else
		serve_pad_entry(t, th, trap, regs);
	return true;
}
