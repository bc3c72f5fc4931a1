/* The state of a thread that concerns pads. */
#include "tracee/pads/pads.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/ring.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "unwind/unwind.h"

struct pad_thread *pad_thread(struct thread *th)
{
	if (!th->pads)
		th->pads = xcalloc(1, sizeof(*th->pads));
	return th->pads;
}

int pad_thread_slot(const struct thread *th)
{
	return th->pads && th->pads->pointer ? (int)th->pads->slot : -1;
}

void pad_thread_forget(struct thread *th)
{
	free(th->pads);
	th->pads = NULL;
}

/* Delivers the records in rings. */

struct delivery {
	struct target *target;
	struct address_space *space;
	struct ring_reader reader;
};

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct address_space *s = ctx;
	return space_read(s, addr, buf, size);
}

/* Whether @ev is the free of a delete that was already reported. Clears the slot's entry. */
static bool is_deleted(struct pads *p, const struct heap_event *ev)
{
	for (size_t i = 0; i < p->deleted.count; i++) {
		struct pads_deleted deleted = p->deleted.data[i];
		if (deleted.slot != ev->path)
			continue;
		vec_take_swap(&p->deleted, i);
		return ev->kind == HEAP_FREE && ev->addr == deleted.block;
	}
	return false;
}

bool pads_take_deleted(struct target *t, struct thread *th, taddr_t block)
{
	struct address_space *s = th->process->space;
	int slot = s->pads && s->pads->deleted.count > 0 ? pad_thread_slot(th) : -1;
	if (slot < 0)
		return false;
	pads_catch_up(t, s); /* an earlier record of the thread changes which call it is in */
	const struct heap_event ev = {.kind = HEAP_FREE, .addr = block, .path = (uint32_t)slot};
	return is_deleted(s->pads, &ev);
}

/* If stacks of @s continue on others, its pads write no raw records from now on. */
static void follow_rules(struct address_space *s)
{
	struct pad_memory *m = &s->pads->memory;

	if (s->sink.unwind && unwind_has_switch(s->sink.unwind) &&
	    !(m->written.flags & PAD_SWITCHES))
		pad_memory_set_flags(m, m->written.flags | PAD_SWITCHES);
}

static void deliver(void *ctx, struct heap_event *ev)
{
	struct delivery *d = ctx;
	struct address_space *s = d->space;
	struct pads *p = s->pads;
	if (ev->path + 1 == p->watched)
		p->saw_record = true;
	if (p->deleted.count > 0 && is_deleted(p, ev))
		return;
	if (!ev->old_addr && ev->kind == HEAP_REALLOC_BEGIN)
		return;
	if (!ev->old_addr && ev->kind == HEAP_REALLOC_END)
		ev->kind = HEAP_ALLOC;
	if (!s->watch.is_profiled || !s->watch.is_ready)
		return;
	ev->thread = ev->path < p->owner.count ? (uint32_t)p->owner.data[ev->path] : 0;
	ev->is_chosen = true;
	if (!heap_sampling_see(d->target, s, ev))
		return;
	if (ev->stack) {
		ev->stack->read = read_memory;
		ev->stack->read_ctx = s;
	}
	d->target->sink.event(d->target->sink.ctx, s, ev);
	if (ev->stack)
		follow_rules(s);
}

static uint32_t find_node(void *ctx, const struct heap_event *ev)
{
	struct delivery *d = ctx;
	const struct pads *p = d->space->pads;
	struct heap_event of_thread = *ev;

	of_thread.thread = ev->path < p->owner.count ? (uint32_t)p->owner.data[ev->path] : 0;
	return d->target->sink.node(d->target->sink.ctx, d->space, &of_thread);
}

static void deliver_quick(void *ctx, struct quick_event *event, size_t count)
{
	struct delivery *d = ctx;
	struct pads *p = d->space->pads;
	for (size_t i = 0; p->watched && i < count; i++)
		p->saw_record |= event[i].slot + 1u == p->watched;
	const struct event_options *o = &d->target->options.events;
	bool wants_threads = o->stack_pointers || o->quick_threads;
	for (size_t i = 0; wants_threads && i < count; i++)
		event[i].thread =
			event[i].slot < p->owner.count ? (uint32_t)p->owner.data[event[i].slot] : 0;
	d->target->sink.quick(d->target->sink.ctx, d->space, event, count);
}

/* Whether records may take the short path. */
static bool is_quick(const struct target *t, struct address_space *s)
{
	return t->sink.wants_quick && s->watch.is_profiled && s->watch.is_ready &&
	       s->pads->deleted.count == 0 && t->sink.wants_quick(t->sink.ctx, s);
}

static void before_records(void *ctx, bool is_behind)
{
	struct delivery *d = ctx;
	struct target *t = d->target;

	if (t->sink.records && d->space->watch.is_profiled && d->space->watch.is_ready)
		t->sink.records(t->sink.ctx, d->space, is_behind);
	d->reader.quick = is_quick(t, d->space) ? deliver_quick : NULL;
}

size_t pads_drain_some(struct target *t, struct address_space *s)
{
	struct delivery d = {t, s, {
		.ctx = &d,
		.before = before_records,
		.event = deliver,
		.node = find_node,
		.is_counting = t->options.events.no_stacks,
	}};

	if (!pad_memory_is_intact(&s->pads->memory))
		ring_break(&s->pads->ring, "its control block was overwritten");
	return ring_drain(&s->pads->ring, PADS_DRAIN_BATCH, &d.reader);
}

void pads_forget_nodes(struct address_space *s)
{
	if (s->pads)
		ring_forget_nodes(&s->pads->ring);
}

void pads_forget_node(struct address_space *s, pid_t tid)
{
	for (size_t i = 0; s->pads && i < s->pads->owner.count; i++)
		if (s->pads->owner.data[i] == tid)
			ring_mirror(&s->pads->ring, (uint32_t)i)->has_node = false;
}

uint64_t pads_records(const struct address_space *s)
{
	return s->pads ? s->pads->ring.stats.records : 0;
}

size_t pads_drain(struct target *t, struct address_space *s)
{
	struct ring *r = &s->pads->ring;
	uint64_t end = r->number + ring_pending(r);
	size_t sum = 0, n;
	do {
		n = pads_drain_some(t, s);
		sum += n;
	} while (n >= PADS_DRAIN_BATCH && r->number < end);
	return sum;
}

void pads_catch_up(struct target *t, struct address_space *s)
{
	if (s->pads && !t->is_abandoned)
		pads_drain(t, s);
}

bool pads_catch_up_on(struct target *t, const struct thread *th)
{
	struct address_space *s = th->process->space;
	struct pads *p = s->pads;
	if (!p)
		return false;
	p->watched = (uint32_t)(pad_thread_slot(th) + 1);
	p->saw_record = false;
	pads_catch_up(t, s);
	p->watched = 0;
	return p->saw_record;
}

bool pads_are_corrupt(struct address_space *s)
{
	struct pads *p = s->pads;
	if (!p || !p->ring.broken)
		return false;
	if (!p->is_reported)
		log_error("process %d: its shared memory is corrupt (%s): "
			  "profiling of it ends here",
			  s->processes.pid, p->ring.broken);
	p->is_reported = true;
	return true;
}

uint64_t pads_time_error(const struct address_space *s)
{
	return s->pads ? ring_stats_error(&s->pads->ring.stats) : 0;
}

void pads_finish(struct target *t, struct address_space *s)
{
	if (!s->pads)
		return;
	pads_catch_up(t, s);
	pads_are_corrupt(s);
	t->stats.records += s->pads->ring.stats.records;
	t->stats.raw_records += s->pads->ring.stats.raw;
	t->stats.ring_bytes += s->pads->ring.stats.bytes;
}

/* Assigns slots to threads, and sets the bounds of their stacks. */

struct pad_slot *pads_slot(const struct thread *th)
{
	struct pads *p = th->process->space->pads;
	int index = pad_thread_slot(th);
	return p && index >= 0 ? pad_memory_slot(&p->memory, (uint32_t)index) : NULL;
}

static void own_slot(struct pads *p, struct thread *th, uint32_t slot)
{
	while (p->owner.count <= slot)
		*vec_add(&p->owner) = 0;
	p->owner.data[slot] = th->tid;
	struct pad_thread *own = pad_thread(th);
	own->slot = slot;
	own->waited_slot = own->waited_end = 0;
	own->misses = 0;
	ring_reset_slot(&p->ring, slot);
}

int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp)
{
	struct pads *p = th->process->space->pads;
	taddr_t low, high;
	pad_thread(th)->pointer = thread_pointer;
	bool has_room = pad_slots_have_room(&p->memory, thread_pointer) || pads_grow(t, th);
	int rc = has_room ? stack_scan_bounds(th, thread_pointer, sp, &low, &high) : -ENOSPC;
	if (rc == 0) {
		pads_catch_up(t,
			      th->process->space); /* a reused slot: its old records come first */
		rc = pad_slots_add(&p->memory, thread_pointer, low, high);
	}
	if (rc < 0) {
		pad_thread(th)->pointer = 0;
		return rc;
	}
	own_slot(p, th, (uint32_t)rc);
	return 0;
}

void pads_note_apart(struct thread *th, const struct stack_view *view)
{
	struct pad_slot *slot = pads_slot(th);

	slot->is_apart = unwind_leaves(th->process->space->sink.unwind, view, slot->stack_low,
				       slot->stack_high);
}

bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer)
{
	struct pads *p = th->process->space->pads;
	int slot = pad_slots_find(&p->memory, thread_pointer);
	return slot >= 0 && (size_t)slot < p->owner.count && p->owner.data[slot] &&
	       p->owner.data[slot] != th->tid;
}

void pads_add_thread(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	if (!th->process->space->pads || ptrace_get_regs(th->tid, &regs) != 0)
		return;
	uint64_t pointer = regs.word[t->arch->thread_pointer];
	if (pointer == 0 || (pads_slot_is_taken(th, pointer) && th->process->is_vfork_child))
		return; /* shares its parent's: breakpoints handle its calls where pads cannot */
	struct stack_view view;
	stack_window_at_stop(t, th, &regs, &view);
	if (pads_give_slot(t, th, pointer, regs.word[t->arch->sp]) == 0)
		pads_note_apart(th, &view);
}

void pads_thread_exit(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct pads *p = s->pads;
	struct pad_thread *own = pad_thread(th);
	if (!p || !own->pointer)
		return;
	pads_catch_up(t, s);
	if (p->owner.data[own->slot] != th->tid)
		return; /* its thread pointer is reused */
	p->owner.data[own->slot] = 0;
	pad_slots_remove(&p->memory, own->pointer);
	own->pointer = 0;
}
