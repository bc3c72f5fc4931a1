/*
 * Serves the traps of pads: whatever they do not decide themselves (arch/pad.h says what).
 */
#include "base/log.h"
#include "target/pads_internal.h"
#include "target/ptrace.h"
#include "target/requests.h"

static struct trap *entry_trap(struct space *s, const struct trap *trap)
{
	return &s->traps.data[s->pads->trap.data[trap->pad - 1]];
}

/* The caller's view at a leave trap, where the stack is too large for a record. */
static void serve_leave(struct target *t, struct thread *th, struct trap *trap,
			const struct arch_regs *regs)
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
		.time_ns = t->now_ns,
		.thread = (uint32_t)th->tid,
		.kind = is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC,
		.function = probe->function,
		.addr = slot->result,
		.size = args.size,
		.align = args.align,
		.old_addr = is_realloc ? args.block : 0,
		.stack = &view,
		.sp = t->options.stack_pointers ? slot->guard + 8 : 0,
	};
	if (s->is_profiled && s->is_ready)
		t->sink.event(t->sink.ctx, s, &ev);
}

void pads_wake_waiters(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	if (!p || (!ring_has_room(&p->ring) && !ring_has_hole(&p->ring) && !p->ring.late_count))
		return;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		/*
		 * a hole at the read position may be the record of one who waits: once the tail
		 * moved, it may fit, and must go on however full the ring is
		 */
		if (!th || !th->waits_for_room || th->process->space != s ||
		    (th->waited_tail == p->ring.published && !ring_has_room(&p->ring)))
			continue;
		th->waits_for_room = false;
		t->waiters--;
		thread_resume(t, th, 0);
	}
}

/* Who waits for room gets some behind the holes that hold the tail. */
static void jump(struct target *t, struct space *s)
{
	uint32_t id = s->id;
	loop_stop_world(t);
	if (target_has_space(t, id) && s->pads) {
		pads_catch_up(t, s);
		ring_publish(&s->pads->ring);
		if (!ring_has_room(&s->pads->ring))
			ring_jump(&s->pads->ring);
	}
	loop_start_world(t);
}

#define STALL_NS 2000000u

void pads_unblock(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	uint64_t mark = p->ring.position ^ p->ring.published << 32 ^ p->ring.late_count;
	if (p->stall_mark != mark) {
		p->stall_mark = mark;
		p->stall_since_ns = t->now_ns;
		if (p->ring.room == p->memory.ring_size) /* else it goes round its holes already */
			return;
	} else if (t->now_ns - p->stall_since_ns < STALL_NS) {
		return;
	}
	p->stall_since_ns = t->now_ns;
	jump(t, s);
}

static bool serve_full(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	uint64_t start = regs->word[t->arch->arg[0]], end = regs->word[t->arch->arg[1]];
	if (ring_is_left_out(&s->pads->ring, start)) {
		ring_forget_range(&s->pads->ring, start, end);
		ptrace_set_word(th->tid, t->arch->ret, 1);
		return true;
	}
	t->stats.ring_full++;
	uint64_t before = th->waited_tail;
	/* no further than to half empty: the rest is read while the program runs */
	size_t n;
	do {
		n = pads_drain_some(t, s);
		ring_publish(&s->pads->ring);
	} while (n >= PADS_DRAIN_BATCH && !ring_has_room(&s->pads->ring));
	/*
	 * the thread may have looked just before the tail moved: only who comes twice has to wait
	 */
	th->waited_tail = s->pads->ring.published;
	return th->waited_tail != before || ring_has_room(&s->pads->ring);
}

void pads_throw(struct thread *th)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	uint64_t word = 0;
	/* the guard stays: the catch finds it, and puts the pad back if it lies inside the call */
	if (slot && slot->guard && space_read(s, slot->guard, &word, sizeof(word)) == 0 &&
	    word == slot->guard_pc)
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

/* The slot that the pads know @th by: a child in vfork has its parent's thread pointer, and no other. */
static struct pad_slot *find_slot(const struct target *t, const struct thread *th,
				  const struct arch_regs *regs)
{
	const struct pads *p = th->process->space->pads;
	if (!p || !th->process->is_vfork_child || pads_slot(th))
		return pads_slot(th);
	int index = pad_memory_find_thread(&p->memory, regs->word[t->arch->thread_pointer]);
	return index < 0 ? NULL : pad_memory_slot(&p->memory, (uint32_t)index);
}

bool pads_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = find_slot(t, th, regs);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t word = 0;
	struct stack_view view;
	if (!slot || !slot->guard || !slot->guard_pc || th->calls.count > 0)
		return false;
	bool is_alive = space_read(s, slot->guard, &word, sizeof(word)) == 0 &&
			word == slot->guard_pc;
	trap_fill_view(t, th, regs, sp, &view);
	if (t->sink.in_signal(t->sink.ctx, s, &view, slot->guard + 2 * sizeof(word)))
		return false; /* a signal handler's call is outermost again */
	if (is_alive && sp < slot->guard)
		return true;
	if (slot == pads_slot(th))
		forget_frames(th); /* left by longjmp */
	return false;
}

/* A call from a stack that is not the slot's: a fiber, or a handler on its own stack. */
#define BOUNDS_TRAPS_TO_MOVE 16

static bool follow_stack(struct target *t, struct thread *th, struct pad_slot *slot, taddr_t sp)
{
	taddr_t low, high;
	if (slot->guard || ++th->bounds_traps < BOUNDS_TRAPS_TO_MOVE)
		return false;
	th->bounds_traps = 0;
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

static void serve_pad_entry(struct target *t, struct thread *th, struct trap *trap,
			    struct arch_regs *regs)
{
	struct space *s = th->process->space;
	const struct pad *pad = &s->pads->list.data[trap->pad - 1];
	struct trap *entry = entry_trap(s, trap);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t pointer = regs->word[t->arch->thread_pointer];
	if (th->thread_pointer != pointer) {
		/* unknown so far: next time round the pad finds its slot */
		if (pointer && !pads_slot_is_taken(th, pointer) &&
		    pads_give_slot(t, th, pointer, sp) == 0)
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
	bool may_be_open = slot->guard_pc || probe_is_marker(entry->probe);
	if (slot->reason == PAD_REASON_STALE && slot->guard && may_be_open && th->calls.count == 0)
		forget_frames(th); /* left by longjmp */
	trap_enter(t, th, entry, regs);
}

bool pads_serve(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	if (trap->kind == TRAP_PAD_FULL)
		return serve_full(t, th, regs);
	pads_catch_up(t, th->process->space);
	if (trap->kind == TRAP_PAD_LEAVE)
		serve_leave(t, th, trap, regs);
	else
		serve_pad_entry(t, th, trap, regs);
	return true;
}
