/*
 * Cells (blocks by leaf, interval of allocation, interval of release), runs of packed cells, and
 * tables of them.
 */
#ifndef PTMEM_PROFILE_CELLS_H
#define PTMEM_PROFILE_CELLS_H

#include "base/alloc.h"
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

/*
 * Runs of cells, packed: some 10 bytes each, in ascending order. A reader reads several at once, as
 * if they were one run in which cells of the same order are added up.
 */

struct cell_run {
	VEC(uint8_t) byte;         /* owned */
	uint32_t count;            /* of cells */
	uint32_t leaf;             /* of the last one */
};

/* Appends @c, which comes after all cells of @r. */
void cell_run_add(struct cell_run *r, const struct cell *c);
/* No more will be appended: frees what it has reserved for that. */
void cell_run_end(struct cell_run *r);
void cell_run_deinit(struct cell_run *r);

struct cell_source {
	const uint8_t *at, *end;
	struct cell next;          /* leaf 0: there is none */
};

struct cell_reader {
	VEC(struct cell_source) source;
};

/* @run must not change while it is read. */
void cell_reader_add(struct cell_reader *rd, const struct cell_run *run);
/* The next cell that is not zero. False: there is none. */
bool cell_reader_next(struct cell_reader *rd, struct cell *out);
void cell_reader_deinit(struct cell_reader *rd);

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
