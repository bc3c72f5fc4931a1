/*
 * Runs of cells, packed: some 10 bytes each, in ascending order. A reader reads several at once, as
 * if they were one run in which cells of the same order are added up.
 */
#ifndef PTMEM_PROFILE_CELL_RUNS_H
#define PTMEM_PROFILE_CELL_RUNS_H

#include "base/vec.h"
#include "profile/cell.h"

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

#endif
