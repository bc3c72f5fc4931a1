/*
 * Two profiles, both recordings or both massif files, in one tree, as frame_match.h matches their
 * frames.
 */
#ifndef PTMEM_REPORT_DIFF_PATHS_H
#define PTMEM_REPORT_DIFF_PATHS_H

#include "recording/recording_view.h"
#include "report/frame_match.h"
#include "report/input.h"

enum diff_order {
	DIFF_CALLER_FIRST, /* functions: for flame graphs and folded stacks */
	DIFF_SITE_FIRST,   /* call sites, each with its callers below it: for the text */
	DIFF_TABLE,        /* call sites; below each the functions of its stacks, outermost first */
};

struct diff_stack {
	const uint32_t *frame; /* the frames' numbers, innermost first */
	size_t count;          /* 0 = unknown stack */
	size_t site;           /* index of the call site */
	uint64_t bytes, blocks;
	double variance;       /* of the bytes, square bytes */
	uint64_t max_bytes;    /* the most that it held at one time; 0 = unknown */
};

struct diff_paths;

/* @match must be complete and outlive the result. */
struct diff_paths *diff_paths_new(const struct frame_match *match, enum diff_order order);
void diff_paths_add(struct diff_paths *p, enum path_side side, const struct diff_stack *stack);

/*
 * The tree with totals, freed by the caller; frees @p. Call sites that are not distinguished are
 * named with their lines in the new profile ("f (a.c:7, 12)"), or in the old one if only it has
 * them.
 */
struct path_tree *diff_paths_finish(struct diff_paths *p);

/* Two profiles to be compared: both recordings, or both massif files. */

/* Indexed by enum path_side. */
struct diff_pair {
	const struct input *input;      /* of one kind; a zeroed one is a side without anything */
	struct recording_view view[2];  /* of their call paths (input_paths) */
	size_t snapshot[2];             /* of massif files: the index of what is viewed */
	struct frame_match *match;
};

/*
 * All frames of @input[PATH_OLD] and @input[PATH_NEW], of which the first may be zeroed; @is_exact
 * as in frame_match_new. The caller frees it.
 */
struct frame_match *diff_pair_match(const struct input *input, bool is_exact);

/* Gets a stack with its frames in @pair->match. */
typedef void diff_stack_fn(void *ctx, enum path_side side, const struct diff_stack *stack);

/* Passes the stacks of the views of both sides to @take. */
void diff_pair_each(const struct diff_pair *pair, diff_stack_fn *take, void *ctx);

/* The values of the view on both sides; the caller frees it. */
struct path_tree *diff_pair_tree(const struct diff_pair *pair, enum diff_order order);

#endif
