/*
 * Blocks by leaf, interval of allocation and interval of release, for blocks that outlived the
 * interval in which they were allocated.
 *
 *	(leaf, born, CELL_NEVER)  blocks that were live at the end of interval born
 *	(leaf, born, died)        those of them that were released in interval died > born
 *
 * So what is live at the end of interval t is the sum of the first kind minus the sum of the
 * second, both with born <= t and died <= t. Only cells_merge removes cells. Blocks from before the
 * first interval are born in CELL_BEFORE, which counts as less than any interval.
 */
#ifndef PTMEM_PROFILE_CELLS_H
#define PTMEM_PROFILE_CELLS_H

#include "base/types.h"

#define CELL_NEVER 1023u  /* larger than any interval */
#define CELL_BEFORE 1022u /* the interval before the first one */

struct cell {
	uint32_t leaf;
	uint16_t born, died;
	/*
	 * may be temporarily negative (wrapped): releases before the interval's end are subtracted
	 * first
	 */
	uint64_t blocks, bytes;
	uint64_t variance; /* of the bytes; 0 without sampling */
};

/* The interval in which @c last changed; of those born before the first interval 0. */
static inline uint32_t cell_changed(const struct cell *c)
{
	return c->died != CELL_NEVER ? c->died : c->born != CELL_BEFORE ? c->born : 0;
}

/* Open addressing; a slot with zero blocks and bytes counts as absent. */
struct cells {
	struct cell *slot;
	uint32_t slots, count; /* slots: a power of two, or 0 */
};

void cells_clone(struct cells *to, const struct cells *from);
void cells_deinit(struct cells *c);

/* Adds to the values of @key's leaf, born and died. */
void cells_add(struct cells *c, const struct cell *key);

/* Replaces the values of @key's leaf, born and died. */
void cells_set(struct cells *c, const struct cell *key);

/* Halves the number of intervals: cells born and died in the same one are dropped. */
void cells_merge(struct cells *c);

/* Drops everything from interval @first on. */
void cells_forget(struct cells *c, uint32_t first);

/* Number of cells with values. */
uint32_t cells_used(const struct cells *c);

/*
 * All cells with values, ordered by leaf, born, died; the caller frees *out. Returns their
 * number.
 */
size_t cells_sorted(const struct cells *c, struct cell **out);

#endif
