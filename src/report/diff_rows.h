/* A difference as rows: one for each call site and path of functions in either profile. */
#ifndef PTMEM_REPORT_DIFF_ROWS_H
#define PTMEM_REPORT_DIFF_ROWS_H

#include <stdio.h>

#include "base/vec.h"
#include "output/path_tree.h"

struct diff_row {
	const char *site;            /* the tree's */
	VEC(const char *) function;  /* outermost first; empty: unknown; the tree's */
	uint64_t bytes[2], blocks[2]; /* by enum path_side */
};

struct diff_rows {
	VEC(struct diff_row) row;
};

/* From a tree in the order DIFF_TABLE: the largest growth first, the largest shrinkage last. */
void diff_rows_init(struct diff_rows *rows, const struct path_tree *t);
void diff_rows_deinit(struct diff_rows *rows);

/* Comma-separated values with a header line; without @has_blocks their columns are empty. */
void diff_rows_write_csv(FILE *out, const struct diff_rows *rows, bool has_blocks);
/* An array of objects; without @has_blocks their numbers are null. */
void diff_rows_write_json(FILE *out, const struct diff_rows *rows, bool has_blocks);

#endif
