/*
 * Pads in a forked child. See pads.h.
 *
 * The memory of pads is shared with ptmem, so a fork shares it with its parent, too: both have the
 * same thread pointer and stack, hence the same slot. So the child's entries become breakpoints,
 * and it enters no pad any more.
 *
 * The exception is a fork inside a pad: by a signal handler that interrupted the pad, or by what
 * the pad had called. The pad is about to write to slot and ring. Such a child gets real pads:
 * before it runs, its own memory replaces the inherited one, with slot and ring as at the fork. So
 * the rest of the pad runs in both processes, each with its own memory.
 */
#include "tracee/pads/pads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/own_code.h"
#include "tracee/pads/pad_clock.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/ring.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "unwind/unwind.h"

/* The state at the fork: the parent continues before the child's memory is made. */
struct pad_fork_snapshot {
	struct pads *pads;           /* except for its memory */
	struct pad_memory_options options;
	struct pad_control control;
	struct pad_slot slot;
	struct pad_deep_copy *deep;  /* NULL = the slot has none */
	struct ring_unfinished *unfinished; /* the record that the thread may be writing */
	taddr_t at;                  /* address of the memory */
};

void pads_put_breakpoints(const struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		struct trap *trap = &s->traps.data[i];
		if (trap->kind >= TRAP_PAD_ENTRY)
			trap->is_removed = true;
		if (trap->kind != TRAP_ENTRY || !trap->pad || trap->is_removed)
			continue;
		uint8_t bytes[sizeof(trap->original)];
		memcpy(bytes, trap->original, trap->patch_size);
		memcpy(bytes, t->arch->trap, t->arch->trap_size);
		space_write(s, trap->addr, bytes, trap->patch_size);
		trap->pad = 0;
		trap->patch_size = t->arch->trap_size;
	}
}

/* The same pads, for the thread of @slot alone. */
static struct pads *copy_pads(const struct pads *from, uint32_t slot)
{
	struct pads *p = xcalloc(1, sizeof(*p));
	p->recorder = from->recorder;
	p->recorder_size = from->recorder_size;
	vec_append(&p->list, &from->list);
	vec_append(&p->trap, &from->trap);
	for (size_t i = 0; i < from->deleted.count; i++) {
		if (from->deleted.data[i].slot == slot)
			*vec_add(&p->deleted) = from->deleted.data[i];
	}
	ring_fork(&p->ring, &from->ring, slot);
	return p;
}

static struct pad_fork_snapshot *take_snapshot(struct pads *p, const struct thread *th)
{
	const struct pad_memory *m = &p->memory;
	uint32_t slot = th->pads->slot;
	struct pad_fork_snapshot *h = xcalloc(1, sizeof(*h));
	ring_pending(&p->ring); /* the numbers of now */
	h->pads = copy_pads(p, slot);
	h->options = (struct pad_memory_options){m->layout.ring_size, m->slots.chunk[0].count,
						 m->written.rule_bits};
	/* copies data that the program can have changed, except for what ptmem relies on */
	h->control = *m->control;
	h->control.next_number = h->pads->ring.next_number;
	h->control.flags = m->written.flags & ~(uint32_t)PAD_VIRTUAL;
	h->control.off = m->written.off;
	h->control.shared = m->written.shared;
	memset(h->control.label, 0, sizeof(h->control.label)); /* take_over sets them */
	h->slot = *pad_memory_slot(m, slot);
	h->slot.index = slot;
	h->slot.thread_pointer = th->pads->pointer;
	h->slot.listed = 0; /* the child's list begins anew */
	h->slot.label_epoch = 0;
	for (uint32_t i = 0; i < PAD_LABELS; i++) /* the calls are the parent's */
		if (h->slot.call[i].sp)
			h->slot.label[i] = (struct pad_label_value){0};
	memset(h->slot.call, 0, sizeof(h->slot.call));
	ring_set_labels(&h->pads->ring, slot, h->slot.label);
	memset(h->slot.count, 0, sizeof(h->slot.count)); /* its counts are in the totals */
	h->deep = pad_cache_copy(m, slot);
	h->unfinished = ring_save_unfinished(&p->ring, slot);
	h->at = m->target;
	return h;
}

/* Copies everything except the pads. */
static void free_snapshot(struct address_space *s)
{
	free(s->promotion.fork_snapshot->deep);
	free(s->promotion.fork_snapshot->unfinished);
	free(s->promotion.fork_snapshot);
	s->promotion.fork_snapshot = NULL;
}

/* Frees the state that pads_fork() saved for @s. */
static void pads_drop_fork_snapshot(struct address_space *s)
{
	if (!s->promotion.fork_snapshot)
		return;
	pads_delete(s->promotion.fork_snapshot->pads);
	free_snapshot(s);
}

void pads_fork(struct target *t, struct address_space *parent, struct address_space *child,
	       struct thread *th)
{
	const struct pad_slot *slot = th ? pads_slot(th) : NULL;
	/*
	 * slots of later chunks are elsewhere: so many threads with such a fork have not been seen
	 * yet
	 */
	if (slot && th->pads->slot < parent->pads->memory.slots.chunk[0].count &&
	    (slot->return_at || stack_scan_is_in_pads(t, th)))
		child->promotion.fork_snapshot = take_snapshot(parent->pads, th);
	else
		pads_put_breakpoints(t, child);
}

/* Creates the memory of @p, which replaces its parent's. */
static int make_memory(struct target *t, struct thread *th, const struct pad_fork_snapshot *h)
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
		pad_slots_inherit(&p->memory, &h->control, &h->slot, h->deep);
		p->ring.memory = &p->memory;
		ring_restore_unfinished(&p->ring, h->slot.index, h->unfinished);
		rc = pads_map_over(t, th, fd, &p->memory, h->at);
		if (rc != 0)
			pad_memory_deinit(&p->memory);
	}
	pads_close_file(t, th, fd);
	return rc;
}

static void take_over(struct target *t, struct thread *th, const struct pad_fork_snapshot *h)
{
	struct address_space *s = th->process->space;
	struct pads *p = s->pads = h->pads;
	pads_set_gap(t, s);
	pads_follow_clock(t, p, p->memory.written.flags & PAD_NO_TICKS);
	pads_follow_losing(t, p);
	pad_memory_set_virtual(&p->memory, &s->virtual);
	pad_memory_set_labels(&p->memory, s->label);
	pad_memory_clear_call_sites(&p->memory);
	pad_memory_set_traps_calls(&p->memory, s->traps_calls);
	heap_sampling_start_pads(t, s);
	pad_owner_add(&t->pads->owner, &p->memory);
	s->own.shared = h->at;
	s->own.shared_size = p->memory.layout.file_size;
	journal_note_shared(s, s->own.shared, s->own.shared_size);
	while (p->owner.count <= h->slot.index)
		*vec_add(&p->owner) = 0;
	p->owner.data[h->slot.index] = th->tid;
	pad_thread(th)->slot = h->slot.index;
	pad_thread(th)->pointer = h->slot.thread_pointer;
	if (s->sink.unwind)
		unwind_set_memory(
			s->sink.unwind,
			(struct unwind_rule *)(void *)(p->memory.base + p->memory.layout.rules),
			h->options.rule_bits, NULL, NULL);
}

/* @s cannot have its own memory: at least its thread must not return into the pad. */
static void set_free(struct target *t, struct thread *th, const struct pad_fork_snapshot *h)
{
	struct address_space *s = th->process->space;
	const struct pad_slot *slot = &h->slot;
	uint64_t word = 0;
	pads_put_breakpoints(t, s);
	if (slot->return_at && space_read(s, slot->return_at, &word, sizeof(word)) == 0 &&
	    word == slot->return_to)
		pads_exchange_return(t, th, h->pads, slot->return_at, word);
}

void pads_thread_started(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct pad_fork_snapshot *h = s->promotion.fork_snapshot;
	if (!h) {
		pads_add_thread(t, th);
		return;
	}
	int rc = seccomp_allows_injection(t, th->tid, NULL) ? make_memory(t, th, h) : -EPERM;
	if (rc == 0) {
		take_over(t, th, h);
		free_snapshot(s);
		return;
	}
	log_debug("process %d: no memory for its pads: %s", s->processes.pid, strerror(-rc));
	if (rc != -ESRCH)
		set_free(t, th, h);
	pads_drop_fork_snapshot(s);
}

/*
 * The lifetime of pads.
 */

void pads_answer_blocks(struct address_space *s)
{
	if (s->pads)
		pad_memory_set_flags(&s->pads->memory,
				     s->pads->memory.written.flags | PAD_ANSWER_BLOCKS);
}

void pads_init(struct target *t)
{
	t->pads = xcalloc(1, sizeof(*t->pads));
	pad_owner_init(&t->pads->owner);
	t->pads->clock = pad_clock_new();
}

void pads_deinit(struct target *t)
{
	own_code_free(t);
	pad_owner_deinit(&t->pads->owner);
	pad_clock_delete(t->pads->clock);
	free(t->pads->distances);
	free(t->pads);
}

void pads_share(struct address_space *s)
{
	if (s->pads)
		pad_memory_set_shared(&s->pads->memory, true);
}

void pads_set_losing(struct target *t, bool is_losing)
{
	t->pads->is_losing = is_losing;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct address_space *s = t->processes.data[i]->space;
		if (s->pads)
			pads_follow_losing(t, s->pads);
	}
}

taddr_t pads_mapped_at(const struct address_space *s, uint64_t *size_out)
{
	*size_out = s->own.shared_size;
	return s->own.shared;
}

void pads_free(struct target *t, struct address_space *s)
{
	pads_drop_fork_snapshot(s);
	struct pads *p = s->pads;
	if (!p)
		return;
	pad_owner_remove(&t->pads->owner, &p->memory);
	pad_clock_remove(t->pads->clock, p->memory.control);
	pad_memory_deinit(&p->memory);
	pads_delete(p);
	s->pads = NULL;
}
