/*
 * Growth by call site: as text (the largest growth first, each site with its callers), as rows in
 * CSV or JSON, and both profiles with their matched frames as JSON (doc/format.md).
 */
#ifndef PTMEM_REPORT_DIFF_OUTPUT_H
#define PTMEM_REPORT_DIFF_OUTPUT_H

#include <stdio.h>

#include "base/alloc.h"
#include "output/path_tree.h"
#include "report/frame_match.h"
#include "report/input.h"

/*
 * Growth by call site, as text: the differences of two trees, the largest growth first, each site
 * with its callers.
 */

struct diff_options {
	unsigned top;      /* at most so many rows below one another's caller */
	const char *error_heading; /* of a column with standard errors; NULL: there is none */
	double threshold;  /* percent of the largest difference: what is less is summed up */
};

/* Prints @t, whose paths begin at the call sites. The caller checks the stream for errors. */
void diff_print(FILE *out, const struct path_tree *t, const struct diff_options *options);

/* A difference as rows: one for each call site and path of functions in either profile. */

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

/* Two profiles with their matched frames, as JSON: doc/format.md defines it. */

/* The comparison as rows, for readers that do not compute it themselves. */
struct diff_json_rows {
	const char *view[2];     /* "live at the peak", "peak snapshot 7" */
	const struct diff_rows *rows;
	const char *more;        /* members; NULL = none */
};

/*
 * @input: by enum path_side, of one kind; @more: by enum path_side, further members of recordings
 * (recording_json.h); @rows may be NULL. The caller checks the stream for errors.
 */
void diff_json_write(FILE *out, const struct input *input, char *const more[2],
		     const struct frame_match *match, const struct diff_json_rows *rows);

#endif
