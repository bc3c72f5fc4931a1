/*
 * Stacks from the ring: a record has the number of outer frames that are the same as in its
 * thread's last stack, and the new ones. A mirror for each slot converts them to complete stacks.
 */
#ifndef PTMEM_TRACEE_PADS_RING_STACK_H
#define PTMEM_TRACEE_PADS_RING_STACK_H

#include "tracee/pads/ring.h"

struct ring_mirror {
	taddr_t *frame;        /* outermost first */
	size_t count, capacity;
	uint32_t node;         /* of the complete stack, if known */
	bool has_node;
	bool is_new_to_sink;   /* copied from another ring: its reader has not seen these frames */
};

/* Reads @word of the ring once. */
static inline uint64_t ring_load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* The mirror of @slot, which must be below memory->used. */
struct ring_mirror *ring_add_mirror(struct ring *r, uint32_t slot);
static inline struct ring_mirror *ring_mirror(struct ring *r, uint32_t slot)
{
	return slot < r->mirror_count ? &r->mirror[slot] : ring_add_mirror(r, slot);
}
void ring_free_mirrors(struct ring *r);

/* Empties the mirror, after pad_slots_reset or for a new thread in the slot. */
void ring_reset_slot(struct ring *r, uint32_t slot);

/* Whether the stack of @block, which has PAD_HAS_STACK, continues the mirror of its slot. */
static inline bool ring_stack_fits(const struct pad_record_block *block,
				   const struct ring_mirror *m)
{
	return block->kept <= m->count && (uint64_t)block->kept + block->fresh <= PAD_MAX_FRAMES;
}

/*
 * Copies the stack of the record at @word, whose header was read as @block, and which fits, to the
 * mirror of slot @ev->path and to @ev.
 */
void ring_read_stack(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev);
/* Sets the last stack of slot @ev->path in @ev. */
void ring_read_same_stack(struct ring *r, struct heap_event *ev);

#endif
