/* Copies of a ring for a fork. */
#ifndef PTMEM_TRACEE_PADS_RING_FORK_H
#define PTMEM_TRACEE_PADS_RING_FORK_H

#include "tracee/pads/ring.h"

/*
 * What the thread of a slot may have written behind the head of its ring: parts of a record, which
 * it will complete in both processes.
 */
struct ring_unfinished {
	uint64_t head;
	size_t size;
	uint8_t data[];
};

/* The same of @slot, whose thread is stopped; xfree'd by the caller. */
struct ring_unfinished *ring_save_unfinished(struct ring *r, uint32_t slot);
/* Writes it to the ring of @slot in the new memory of @r, where that thread continues. */
void ring_restore_unfinished(struct ring *r, uint32_t slot, const struct ring_unfinished *saved);

/*
 * Initializes @r with a copy of what @parent knows about @slot, for a ring whose records will be
 * read only from the fork on. The caller sets memory.
 */
void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot);

#endif
