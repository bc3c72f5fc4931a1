/*
 * What a fork inherits of its parent's pads. See pads.h.
 *
 * The memory of pads is shared with ptmem, and so a fork shares it with its parent: both have the same
 * thread pointer and stack, hence the same slot. So the fork's entries become breakpoints, and it meets
 * no pad any more.
 *
 * Unless it stands in one: a signal handler that interrupted a pad, or what a pad had called, forks. Its
 * return address is in the slot then, and the pad is going to write to slot and ring. Such a fork gets the
 * pads themselves: before it runs, a memory of its own takes the place of the inherited one, with the
 * slot and the position in the ring as they were at the fork. Whatever the pad was about to do happens
 * in both processes, each in its own memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "target/guard.h"
#include "target/pads_internal.h"
#include "target/ptrace.h"

/* As it was at the fork; the parent goes on before the child makes its memory. */
struct pad_heritage {
	struct pads *pads;           /* but for its memory */
	struct pad_memory_options options;
	struct pad_control control;
	struct pad_slot slot;
	uint8_t *holes;              /* of the ring: one may be the record that the thread was writing */
	taddr_t at;                  /* where the memory lies */
};

/* Breakpoints in the place of jumps. */
static void put_breakpoints(const struct target *t, struct space *child)
{
	for (size_t i = 0; i < child->traps.count; i++) {
		struct trap *trap = &child->traps.data[i];
		if (trap->kind >= TRAP_PAD_ENTRY)
			trap->is_removed = true;
		if (trap->kind != TRAP_ENTRY || !trap->pad || trap->is_removed)
			continue;
		uint8_t bytes[sizeof(trap->original)];
		memcpy(bytes, trap->original, trap->patch_size);
		memcpy(bytes, t->arch->trap, t->arch->trap_size);
		space_write(child, trap->addr, bytes, trap->patch_size);
		trap->pad = 0;
		trap->patch_size = t->arch->trap_size;
	}
}

/* The same pads, for the thread of @slot alone. */
static struct pads *copy_pads(const struct pads *from, uint32_t slot)
{
	struct pads *p = xcalloc(1, sizeof(*p));
	p->blob = from->blob;
	p->blob_size = from->blob_size;
	for (size_t i = 0; i < from->list.count; i++)
		*vec_add(&p->list) = from->list.data[i];
	for (size_t i = 0; i < from->trap.count; i++)
		*vec_add(&p->trap) = from->trap.data[i];
	for (size_t i = 0; i < from->deleted.count; i++) {
		if (from->deleted.data[i].slot == slot)
			*vec_add(&p->deleted) = from->deleted.data[i];
	}
	ring_fork(&p->ring, &from->ring, slot);
	return p;
}

static struct pad_heritage *bequeath(const struct pads *p, uint32_t slot)
{
	const struct pad_memory *m = &p->memory;
	struct pad_heritage *h = xcalloc(1, sizeof(*h));
	h->pads = copy_pads(p, slot);
	h->options = (struct pad_memory_options){m->ring_size, m->chunk[0].count,
						 m->control->rule_bits};
	h->control = *m->control;
	h->control.tail = p->ring.published;
	h->control.room = p->ring.room;
	h->slot = *pad_memory_slot(m, slot);
	h->holes = ring_save_holes(&p->ring);
	h->at = m->target;
	return h;
}

void pads_drop_heritage(struct space *s)
{
	if (!s->heritage)
		return;
	pads_delete(s->heritage->pads);
	free(s->heritage->holes);
	free(s->heritage);
	s->heritage = NULL;
}

void pads_fork(struct target *t, struct space *parent, struct space *child, struct thread *th)
{
	const struct pad_slot *slot = th ? pads_slot(th) : NULL;
	/* slots of later chunks lie elsewhere: that many threads and such a fork were not seen yet */
	if (slot && th->slot < parent->pads->memory.chunk[0].count &&
	    (slot->guard || install_is_in_pads(t, th)))
		child->heritage = bequeath(parent->pads, th->slot);
	else
		put_breakpoints(t, child);
}

/* Makes the memory of @p, in the place of its parent's. */
static int make_memory(struct target *t, struct thread *th, const struct pad_heritage *h)
{
	struct pads *p = h->pads;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	int rc = pad_memory_init(&p->memory, own, &h->options);
	if (rc != 0) {
		close(own);
	} else {
		pad_memory_locate(&p->memory, h->at);
		pad_memory_inherit(&p->memory, &h->control, &h->slot, p->ring.position);
		p->ring.memory = &p->memory;
		ring_put_holes(&p->ring, h->holes);
		rc = pads_map_over(t, th, fd, &p->memory, h->at);
		if (rc != 0)
			pad_memory_deinit(&p->memory);
	}
	pads_close_file(t, th, fd);
	return rc;
}

static void take_over(struct target *t, struct thread *th, const struct pad_heritage *h)
{
	struct space *s = th->process->space;
	struct pads *p = s->pads = h->pads;
	pad_owner_add(&t->pad_owner, &p->memory);
	guard_note_shared(s, h->at, p->memory.map_size);
	while (p->owner.count <= h->slot.index)
		*vec_add(&p->owner) = 0;
	p->owner.data[h->slot.index] = th->tid;
	th->slot = h->slot.index;
	th->thread_pointer = h->slot.thread_pointer;
	if (t->sink.rule_memory && s->user)
		t->sink.rule_memory(t->sink.ctx, s,
				    (struct unwind_rule *)(void *)(p->memory.base + p->memory.rules),
				    h->options.rule_bits);
}

/* @s cannot have a memory of its own: at least its thread shall not return into the pad. */
static void set_free(struct target *t, struct space *s, const struct pad_slot *slot)
{
	uint64_t word = 0;
	put_breakpoints(t, s);
	if (slot->guard && slot->return_pc &&
	    space_read(s, slot->guard, &word, sizeof(word)) == 0 && word == slot->guard_pc)
		space_write(s, slot->guard, &slot->return_pc, sizeof(slot->return_pc));
}

void pads_born(struct target *t, struct thread *th)
{
	struct space *s = th->process->space;
	struct pad_heritage *h = s->heritage;
	if (!h) {
		pads_add_thread(t, th);
		return;
	}
	int rc = syscalls_may_inject(t, th->tid) ? make_memory(t, th, h) : -EPERM;
	if (rc == 0) {
		take_over(t, th, h);
		free(h->holes);
		free(h);
		s->heritage = NULL;
		return;
	}
	log_debug("process %d: no memory for its pads: %s", s->pid, strerror(-rc));
	if (rc != -ESRCH)
		set_free(t, s, &h->slot);
	pads_drop_heritage(s);
}
