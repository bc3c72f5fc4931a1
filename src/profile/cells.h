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
#include "base/vec.h"
#include "profile/cell.h"
#include "profile/cell_runs.h"

/*
 * Open addressing; a cell with zero blocks and bytes counts as absent. With @packs a full table is
 * emptied into a run: what a cell has is then the sum of all its parts.
 */
struct cells {
	struct cell *slot;
	uint32_t slots, count; /* slots: a power of two, or 0 */
	bool packs;            /* cells_set and cells_forget must not be used then */
	VEC(struct cell_run) run; /* each at least twice as large as the next one */
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
uint32_t cells_used(struct cells *c);
/* At least as many, and known at once. */
uint32_t cells_bound(const struct cells *c);

/* Reads all cells with values, ordered by leaf, born, died. They must not change meanwhile. */
struct cells_reader {
	struct cell_reader all;
	struct cell_run loose; /* those of the table */
};

void cells_read(const struct cells *c, struct cells_reader *rd);
bool cells_next(struct cells_reader *rd, struct cell *out);
void cells_read_end(struct cells_reader *rd);
/* The same at once; the caller frees *out. Returns their number. */
size_t cells_sorted(const struct cells *c, struct cell **out);

#endif
