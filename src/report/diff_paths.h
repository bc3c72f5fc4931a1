/* The stacks of two profiles in one tree, as frame_match.h matches their frames. */
#ifndef PTMEM_REPORT_DIFF_PATHS_H
#define PTMEM_REPORT_DIFF_PATHS_H

#include "report/frame_match.h"

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

#endif
