/* The blocks of one leaf that were allocated in one interval, and released in another. */
#ifndef PTMEM_PROFILE_CELL_H
#define PTMEM_PROFILE_CELL_H

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

/* By leaf, born, died: different for each cell of a table. */
static inline uint64_t cell_order(const struct cell *c)
{
	return (uint64_t)c->leaf << 32 | (uint32_t)c->born << 16 | c->died;
}

#endif
