/*
 * Blocks by leaf, interval of allocation and interval of release: what a history keeps of blocks
 * that are gone, and of those that outlived the interval in which they were allocated.
 *
 *	(leaf, born, CELL_NEVER)  blocks that were live at the end of interval born
 *	(leaf, born, died)        those of them that were released in interval died > born
 *
 * So what is live at the end of interval t is the sum of the first kind minus the sum of the
 * second, both with born <= t and died <= t. Nothing is ever removed but by cells_merge.
 */
#ifndef PTMEM_PROFILE_CELLS_H
#define PTMEM_PROFILE_CELLS_H

#include "base/types.h"

#define CELL_NEVER 1023u /* larger than any interval */

struct cell {
	uint32_t leaf;
	uint16_t born, died;
	/* may be below zero for a moment (wrapped): releases before the interval's end is noted */
	uint64_t blocks, bytes;
	uint64_t variance; /* of the bytes; 0 without sampling */
};

/* Open addressing; a slot without blocks and bytes is as good as absent. */
struct cells {
	struct cell *slot;
	uint32_t slots, count; /* slots: a power of two, or 0 */
};

void cells_clone(struct cells *to, const struct cells *from);
void cells_deinit(struct cells *c);

/* Adds to the numbers of @key's leaf, born and died. */
void cells_add(struct cells *c, const struct cell *key);

/* Replaces the numbers of @key's leaf, born and died. */
void cells_set(struct cells *c, const struct cell *key);

/* Halves the number of intervals: what was allocated and released in one is dropped. */
void cells_merge(struct cells *c);

/* Forgets what happened in interval @first and later. */
void cells_forget(struct cells *c, uint32_t first);

/* How many have numbers. */
uint32_t cells_used(const struct cells *c);

/* All cells with numbers, by leaf, born, died; *out is the caller's. Returns how many. */
size_t cells_sorted(const struct cells *c, struct cell **out);

#endif
