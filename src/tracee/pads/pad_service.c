/*
 * Stops of threads in pads: their requests, a counter that cannot be read, exceptions.
 */
#include "tracee/pads/pads.h"

#include <signal.h>

#include "base/log.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pad_clock.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/ring.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "unwind/unwind.h"

void pads_set_gap(const struct target *t, struct address_space *s)
{
	uint64_t gap = s->heap.sampling ? 0 : tick_clock_ticks(&t->ticks, RING_GAP_NS);

	pad_memory_set_gap(&s->pads->memory, gap);
}

void pads_follow_clock(struct target *t, struct pads *p, bool needs_it)
{
	struct ring *r = &p->ring;

	if (needs_it && !r->word_clock && pad_clock_add(t->pads->clock, p->memory.control))
		r->word_clock = t->pads->clock;
}

/* The counter cannot be read: what threads write from now on has the time of the other clock. */
static void use_clock(struct target *t, struct pads *p, pid_t pid)
{
	if (!(p->memory.written.flags & PAD_NO_TICKS))
		log_verbose("process %d has disabled the CPU's counter: its events are dated by "
			    "ptmem's clock", pid);
	pads_follow_clock(t, p, true); /* first: other threads may run */
	pad_memory_set_flags(&p->memory, p->memory.written.flags | PAD_NO_TICKS);
	for (uint32_t i = 0; i < p->memory.slots.used; i++)
		__atomic_store_n(&pad_memory_ring(&p->memory, i)->soft_limit, 0, __ATOMIC_RELEASE);
}

bool pads_skip_fault(struct target *t, struct thread *th)
{
	struct pads *p = th->process->space->pads;
	struct recorder_image image = arch_recorder_image();
	struct arch_regs regs;
	siginfo_t info;

	if (!p || ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0 ||
	    ptrace_get_regs(th->tid, &regs) != 0)
		return false;
	const struct {
		uint32_t at, size; /* 0 = the CPU has none */
	} skipped[] = {
		{image.unsure_load, image.unsure_load_size},
		{image.label_load, image.label_load_size},
		{image.short_label_load, image.short_label_size},
		{image.ticks, image.ticks_size},
	};
	uint64_t at = regs.word[t->arch->pc] - p->recorder;
	size_t i = 0;

	while (i < ARRAY_SIZE(skipped) && (!skipped[i].size || at != skipped[i].at))
		i++;
	if (i == ARRAY_SIZE(skipped))
		return false;
	if (at == image.ticks)
		use_clock(t, p, th->process->pid);
	ptrace_set_word(th->tid, t->arch->pc, p->recorder + at + skipped[i].size);
	thread_resume(t, th, 0);
	return true;
}

bool pads_lack_stamps(const struct target *t)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		const struct pads *p = t->processes.data[i]->space->pads;
		if (p && p->memory.written.flags & PAD_NO_TICKS && !p->ring.word_clock)
			return true;
	}
	return false;
}

/* Pad calls in which exceptions are created, or which exceptions leave. */

/* The pad call that @slot is in, among those in which exceptions were created. */
static struct thrown *find_thrown(const struct thread *th, const struct pad_slot *slot)
{
	return slot ? call_state_find_thrown(&th->calls, slot->return_at + PAD_RETURN_BELOW) : NULL;
}

taddr_t pads_return_to(const struct thread *th, const struct pad_slot *slot)
{
	const struct thrown *thrown = slot->return_to ? NULL : find_thrown(th, slot);
	return thrown ? thrown->return_to : slot->return_to;
}

/* The probe of the pad whose calls return to @after. */
static const struct probe *find_probe(const struct address_space *s, taddr_t after)
{
	const struct trap *trap = pads_find_entry(s->pads, s, after);
	return trap ? trap->probe : NULL;
}

/*
 * Calls inside must trap from now on, since only ptmem knows that they count: no word matches this
 * return_to.
 */
void pads_suspend(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	uint64_t word = 0;
	if (!slot || !slot->return_at || !slot->return_to)
		return;
	struct thrown thrown = {
		.sp = slot->return_at + PAD_RETURN_BELOW,
		.return_to = slot->return_to,
	};
	if (call_state_innermost(&th->calls)) {
		slot->return_to = 0;
		return;
	}
	thrown.probe = find_probe(s, slot->return_to);
	if (!thrown.probe || regs->word[t->arch->sp] >= slot->return_at ||
	    space_read(s, slot->return_at, &word, sizeof(word)) != 0 || word != slot->return_to)
		return;
	struct arch_regs at_entry = *regs;
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	probe_read_call(thrown.probe, t->arch, &at_entry, &thrown.args);
	call_state_add_thrown(&th->calls, &thrown);
	slot->return_to = 0;
}

void pads_raise(struct thread *th, taddr_t exception)
{
	const struct address_space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	struct thrown *thrown = find_thrown(th, slot);
	if (slot)
		slot->has_thrown |= thrown || call_state_innermost(&th->calls);
	if (!thrown || thrown->raised || slot->return_to || call_state_innermost(&th->calls))
		return;
	thrown->raised = exception;
	space_write(s, slot->return_at, &s->unwind_through.pc, sizeof(s->unwind_through.pc));
}

/* The pad call continues: it will return to the pad. */
static void restore(struct thread *th, struct pad_slot *slot, struct thrown *thrown)
{
	struct address_space *s = th->process->space;
	uint64_t word = 0;
	slot->return_to = thrown->return_to;
	if (thrown->raised && space_read(s, slot->return_at, &word, sizeof(word)) == 0 &&
	    word == s->unwind_through.pc)
		space_write(s, slot->return_at, &slot->return_to, sizeof(slot->return_to));
	thrown->raised = 0;
}

void pads_resume(struct thread *th, taddr_t exception, taddr_t sp)
{
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	const struct call *call = call_state_innermost(&th->calls);
	if (call && slot->return_at == call->return_at && !call->is_suspended)
		slot->return_to = call->stub_return;
	struct thrown *thrown = slot->return_to || call ? NULL : find_thrown(th, slot);
	bool is_of_another = thrown && thrown->raised && thrown->raised != exception;
	if (!call && sp >= slot->return_at)
		slot->return_at = 0;
	else if (thrown && !is_of_another)
		restore(th, slot, thrown);
	slot->has_thrown = call_state_has_raised(&th->calls, exception);
}

/* Handles the traps of pads: everything that they do not decide themselves (see arch/pad.h). */

static struct trap *entry_trap(struct address_space *s, const struct trap *trap)
{
	return &s->traps.data[s->pads->trap.data[trap->pad - 1]];
}

/*
 * The slot that pads use for @th, or -1: a child in vfork has its parent's thread pointer but no
 * slot.
 */
static int find_slot_index(const struct target *t, const struct thread *th,
			   const struct arch_regs *regs)
{
	const struct pads *p = th->process->space->pads;
	int own = pad_thread_slot(th);
	if (!p || own >= 0 || !th->process->is_vfork_child)
		return p ? own : -1;
	return pad_slots_find(&p->memory, regs->word[t->arch->thread_pointer]);
}

static struct pad_slot *find_slot(const struct target *t, const struct thread *th,
				  const struct arch_regs *regs)
{
	int index = find_slot_index(t, th, regs);
	return index < 0 ? NULL : pad_memory_slot(&th->process->space->pads->memory,
						  (uint32_t)index);
}

/* From now on the recorder walks the stack of slot @index as deep as a walk by ptmem. */
static void deepen(struct pads *p, uint32_t index)
{
	log_debug("slot %u: a stack of more than %d frames", index, PAD_SLOT_FRAMES);
	pad_cache_deepen(&p->memory, index);
	ring_reset_slot(&p->ring, index);
}

/* The caller's view at a leave trap, for a stack that is too large for a record. */
enum trap_answer pads_serve_leave(struct target *t, struct thread *th, struct trap *trap,
				  struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	pads_catch_up(t, s);
	struct pad_slot *slot = find_slot(t, th, regs);
	const struct probe *probe = entry_trap(s, trap)->probe;
	if (!slot || !slot->return_at)
		return TRAP_RESUME;
	struct arch_regs at_entry = *regs;
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	struct probe_call args;
	probe_read_call(probe, t->arch, &at_entry, &args);
	if (probe->is_string)
		args.size = slot->arg[0];
	struct stack_view view;
	stack_window_at_entry(t, th, regs, slot->return_at + PAD_RETURN_BELOW, &view);
	bool is_realloc = probe->kind == PROBE_REALLOC && args.block;
	struct heap_event ev = {
		.time_ns = t->now_ns,
		.thread = (uint32_t)th->tid,
		.kind = is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC,
		.function = probe->function,
		.addr = slot->result,
		.sample_shift = heap_sampling_slot_shift(s, slot),
		.size = args.size,
		.align = args.align,
		.old_addr = is_realloc ? args.block : 0,
		.stack = &view,
		.is_chosen = true,
		.sp = t->options.events.stack_pointers ? pad_call_end(slot) : 0,
	};
	if (s->watch.is_profiled && s->watch.is_ready && heap_sampling_see(t, s, &ev))
		t->sink.event(t->sink.ctx, s, &ev);
	if (slot->reason == PAD_REASON_DEEP)
		deepen(s->pads, (uint32_t)find_slot_index(t, th, regs));
	return TRAP_RESUME;
}

/*
 * A thread at a full ring must report a plausible head. It continues once there is room for it, and
 * then there is room for ever: a thread that traps again for the same head has read a limit that
 * ptmem did not write, and would trap forever.
 */
static void check_wait(const struct pad_thread *own, struct ring *r, uint64_t slot, uint64_t end)
{
	if (slot >= r->memory->slots.used)
		ring_break(r, "a thread waits for room in a ring that does not exist");
	else if (slot == own->waited_slot && end == own->waited_end)
		ring_break(r, "a thread found no room in a ring that has room");
}

/*
 * Reads until the ring of @slot, whose thread is stopped, is half empty, and has room up to @end:
 * the rest is read while the program runs.
 */
static void make_room(struct target *t, struct address_space *s, uint32_t slot, uint64_t end)
{
	struct ring *r = &s->pads->ring;
	size_t n;
	uint64_t used;
	do {
		n = pads_drain_some(t, s);
		used = ring_head(r, slot) - ring_source(r, slot)->position;
	} while (n >= PADS_DRAIN_BATCH && used > ring_source(r, slot)->mask / 2);
	ring_publish_slot(r, slot);
	if (end - ring_source(r, slot)->published > ring_source(r, slot)->mask + 1)
		ring_break(r, "a thread waits for more room than there is");
}

enum trap_answer pads_serve_full(struct target *t, struct thread *th, struct trap *trap,
				 struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	uint64_t slot = regs->word[t->arch->arg[0]], end = regs->word[t->arch->arg[1]];
	struct pad_thread *own = pad_thread(th);
	check_wait(own, &s->pads->ring, slot, end);
	if (!s->pads->ring.broken)
		make_room(t, s, (uint32_t)slot, end);
	if (s->pads->ring.broken)
		return TRAP_RESUME; /* without an answer it leaves the recorder */
	ptrace_set_word(th->tid, arch_recorder_image().full_answer, PAD_FULL_RETRY);
	t->stats.ring_full++;
	own->waited_slot = slot;
	own->waited_end = end;
	if (s->recovery.is_unguarded && !(s->pads->memory.written.flags & PAD_SPINS))
		pad_memory_set_flags(&s->pads->memory, s->pads->memory.written.flags | PAD_SPINS);
	return TRAP_RESUME;
}

static void forget_frames(struct thread *th)
{
	struct pads *p = th->process->space->pads;
	pad_slots_reset(&p->memory, pad_thread(th)->slot);
	ring_reset_slot(&p->ring, pad_thread(th)->slot);
}

uint32_t pads_outer_kind(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	struct pad_slot *slot = find_slot(t, th, regs);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t word = 0;
	struct stack_view view;
	if (!slot || !slot->return_at || !slot->return_to || call_state_innermost(&th->calls))
		return 0;
	bool is_alive = space_read(s, slot->return_at, &word, sizeof(word)) == 0 &&
			word == slot->return_to;
	stack_window_at_entry(t, th, regs, sp, &view);
	if (unwind_in_signal(s->sink.unwind, &view, pad_call_end(slot)))
		return 0; /* a call in a signal handler is outermost again */
	if (is_alive && sp <= slot->return_at) /* equal: by a jump instead of a call */
		return slot->kind;
	if (slot == pads_slot(th))
		forget_frames(th); /* left by longjmp */
	return 0;
}

taddr_t pads_delete_return(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct pad_slot *slot = find_slot(t, th, regs);
	uint64_t word = 0;

	if (!slot || slot->kind != PAD_DELETE || !slot->return_at || !slot->return_to ||
	    regs->word[t->arch->sp] > slot->return_at)
		return 0;
	return space_read(th->process->space, slot->return_at, &word, sizeof(word)) == 0 &&
	       word == slot->return_to ? word : 0;
}

/* Handles a call on a stack that is not the slot's: a fiber, or a handler on its own stack. */
#define BOUNDS_TRAPS_TO_MOVE 16

static bool follow_stack(struct target *t, struct thread *th, const struct arch_regs *regs,
			 struct pad_slot *slot)
{
	struct pad_thread *own = pad_thread(th);
	taddr_t sp = regs->word[t->arch->sp], low, high;
	/* a sample that finds other bounds stays due until it is taken */
	uint32_t needed = th->process->space->heap.sampling ? 1 : BOUNDS_TRAPS_TO_MOVE;
	if (slot->return_at || ++own->bounds_traps < needed)
		return false;
	own->bounds_traps = 0;
	if (stack_scan_bounds(th, own->pointer, sp, &low, &high) != 0)
		return false;
	struct stack_view view;
	stack_window_at_entry(t, th, regs, sp, &view);
	forget_frames(th);
	slot->stack_low = low;
	slot->stack_high = high;
	pads_note_apart(th, &view);
	return true;
}

#define MISSES_MAX 16

/*
 * Whether the pad of @th trapped because it did not find its slot: no @reason is given. It retries
 * then, since it may have got its slot since it looked, or the handler of a signal has taken the
 * reason. If that happens again and again, and nothing is recorded in between, the shared memory is
 * not what ptmem wrote.
 */
static bool slot_is_missed(struct thread *th, uint32_t reason)
{
	struct ring *r = &th->process->space->pads->ring;
	struct pad_thread *own = pad_thread(th);
	if (reason != PAD_REASON_NONE) {
		own->misses = 0;
		return false;
	}
	uint64_t head = ring_head(r, own->slot);
	own->misses = head == own->missed_head ? own->misses + 1 : 1;
	own->missed_head = head;
	if (own->misses == MISSES_MAX)
		ring_break(r, "a thread does not find its slot");
	return true;
}

static bool is_of_exceptions(const struct probe *p)
{
	return p->kind == PROBE_EXCEPTION || p->kind == PROBE_THROW || p->kind == PROBE_CATCH;
}

enum trap_answer pads_serve_entry(struct target *t, struct thread *th, struct trap *trap,
				  struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	pads_catch_up(t, s);
	const struct pad *pad = &s->pads->list.data[trap->pad - 1];
	struct trap *entry = entry_trap(s, trap);
	struct pad_slot *slot = pads_slot(th);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t pointer = regs->word[t->arch->thread_pointer];
	/* a thread unknown so far: when its pad retries it finds its slot */
	if (pad_thread(th)->pointer != pointer && pointer && !pads_slot_is_taken(th, pointer) &&
	    pads_give_slot(t, th, pointer, sp) == 0)
		return TRAP_RESUME;
	if (pad_thread(th)->pointer != pointer || !slot)
		return entry->serve(t, th, entry, regs);
	uint32_t reason = __atomic_exchange_n(&slot->reason, PAD_REASON_NONE, __ATOMIC_RELAXED);
	if (slot_is_missed(th, reason))
		return TRAP_RESUME;
	if (is_of_exceptions(entry->probe)) {
		entry->serve(t, th, entry, regs);
		regs->word[t->arch->pc] = pad->straight;
		ptrace_set_word(th->tid, t->arch->pc, pad->straight);
		return TRAP_RESUME;
	}
	if (reason == PAD_REASON_BOUNDS && follow_stack(t, th, regs, slot))
		return TRAP_RESUME;
	if (reason == PAD_REASON_DEEP) {
		/* the slot must not request it again, even if no cache is free */
		deepen(s->pads, pad_thread(th)->slot);
		return TRAP_RESUME;
	}
	bool may_be_open = slot->return_to || probe_is_marker(entry->probe);
	if (reason == PAD_REASON_STALE && slot->return_at && may_be_open &&
	    !call_state_innermost(&th->calls))
		forget_frames(th); /* left by longjmp */
	return entry->serve(t, th, entry, regs);
}
