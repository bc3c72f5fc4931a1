/*
 * What the rings deliver: records become events, plain ones many at a time. See pads.h.
 */
#include "target/pads.h"

#include "base/log.h"
#include "target/thread.h"

struct delivery {
	struct target *target;
	struct space *space;
	struct heap_event event; /* filled in for each record; cleared once, for that takes time */
};

static int read_nothing(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct space *s = ctx;
	return space_read(s, addr, buf, size);
}

__attribute__((noinline)) static void deliver_raw(struct delivery *d, const struct ring_record *r)
{
	struct stack_view view = {.regs = *r->regs,
				  .start = r->start,
				  .data = r->stack,
				  .size = r->stack_size,
				  .read = read_nothing,
				  .read_ctx = d->space};
	d->event.stack = &view;
	d->target->sink.event(d->target->sink.ctx, d->space, &d->event);
	d->event.stack = NULL;
}

/*
 * Whether @r is the free of a delete that was an event already. The slot's entry goes in any case.
 */
static bool is_deleted(struct pads *p, const struct ring_record *r)
{
	for (size_t i = 0; i < p->deleted.count; i++) {
		struct pads_deleted deleted = p->deleted.data[i];
		if (deleted.slot != r->slot)
			continue;
		vec_take_swap(&p->deleted, i);
		return r->kind == HEAP_FREE && r->addr == deleted.block;
	}
	return false;
}

static void deliver(void *ctx, const struct ring_record *r)
{
	struct delivery *d = ctx;
	if (r->slot + 1u == d->space->pads->listened)
		d->space->pads->was_heard = true;
	if (d->space->pads->deleted.count > 0 && is_deleted(d->space->pads, r))
		return;
	const struct pads *p = d->space->pads;
	struct heap_event *ev = &d->event;
	ev->kind = r->kind;
	if (!r->old_addr) {
		if (r->kind == HEAP_REALLOC_BEGIN)
			return;
		if (r->kind == HEAP_REALLOC_END)
			ev->kind = HEAP_ALLOC;
	}
	ev->function = r->function;
	ev->is_inner = r->is_inner;
	ev->addr = r->addr;
	ev->old_addr = r->old_addr;
	ev->size = r->size;
	ev->align = r->align;
	ev->sp = r->sp;
	ev->path = r->slot;
	ev->thread = r->slot < p->owner.count ? (uint32_t)p->owner.data[r->slot] : 0;
	ev->frame = r->has_stack ? r->frame : NULL;
	if (r->has_stack) {
		ev->frame_count = r->frame_count;
		ev->kept = r->kept;
	}
	if (!d->space->is_profiled || !d->space->is_ready)
		return;
	if (r->has_raw)
		deliver_raw(d, r);
	else
		d->target->sink.event(d->target->sink.ctx, d->space, ev);
}

static uint32_t find_node(void *ctx, const struct ring_record *r)
{
	struct delivery *d = ctx;
	const struct heap_event ev = {
		.kind = HEAP_ALLOC,
		.frame = r->frame,
		.frame_count = r->frame_count,
		.kept = r->kept,
		.path = r->slot,
	};
	return d->target->sink.node(d->target->sink.ctx, d->space, &ev);
}

static void deliver_quick(void *ctx, struct quick_event *event, size_t count)
{
	struct delivery *d = ctx;
	struct pads *p = d->space->pads;
	for (size_t i = 0; p->listened && i < count; i++)
		p->was_heard |= event[i].slot + 1u == p->listened;
	for (size_t i = 0; d->target->options.stack_pointers && i < count; i++)
		event[i].thread =
			event[i].slot < p->owner.count ? (uint32_t)p->owner.data[event[i].slot] : 0;
	d->target->sink.quick(d->target->sink.ctx, d->space, d->event.time_ns, event, count);
}

/* Whether what a ring delivers may go the short way. */
static bool is_quick(const struct target *t, struct space *s)
{
	return t->sink.wants_quick && s->is_profiled && s->is_ready &&
	       s->pads->deleted.count == 0 && t->sink.wants_quick(t->sink.ctx, s);
}

size_t pads_drain_some(struct target *t, struct space *s)
{
	struct delivery d = {t, s, {.time_ns = t->now_ns}};
	const struct ring_reader reader = {
		.ctx = &d,
		.record = deliver,
		.node = find_node,
		.is_counting = t->options.no_stacks,
		.quick = is_quick(t, s) ? deliver_quick : NULL,
	};
	return ring_drain(&s->pads->ring, PADS_DRAIN_BATCH, &reader);
}

/* To where the head was: what threads that run write meanwhile may come as fast as it is read. */
size_t pads_drain(struct target *t, struct space *s)
{
	const struct ring *r = &s->pads->ring;
	uint64_t end = r->position + ring_pending(r);
	size_t sum = 0, n;
	do {
		n = pads_drain_some(t, s);
		sum += n;
	} while (n >= PADS_DRAIN_BATCH && r->position < end);
	return sum;
}

void pads_catch_up(struct target *t, struct space *s)
{
	if (!s->pads || t->is_abandoned)
		return;
	uint64_t end = s->pads->ring.position + ring_pending(&s->pads->ring);
	for (;;) {
		pads_drain(t, s);
		if (s->pads->ring.position >= end || !ring_has_hole(&s->pads->ring))
			return;
		ring_pass_hole(&s->pads->ring, false);
	}
}

bool pads_catch_up_on(struct target *t, const struct thread *th)
{
	struct space *s = th->process->space;
	struct pads *p = s->pads;
	if (!p)
		return false;
	p->listened = pads_slot(th) ? th->slot + 1 : 0;
	p->was_heard = false;
	pads_catch_up(t, s);
	p->listened = 0;
	return p->was_heard;
}

void pads_finish(struct target *t, struct space *s)
{
	if (!s->pads)
		return;
	pads_catch_up(t, s);
	t->stats.holes += s->pads->ring.late_count;
	t->stats.ring_jumps += s->pads->ring.jumps;
	t->stats.records += s->pads->ring.stats.records;
	t->stats.raw_records += s->pads->ring.stats.raw;
	t->stats.ring_bytes += s->pads->ring.stats.bytes;
}
