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
	size_t count;          /* 0 = the stack is not known */
	size_t site;           /* which of them is the call site */
	uint64_t bytes, blocks;
};

struct diff_paths;

/* @match is finished and outlives what is made. */
struct diff_paths *diff_paths_new(const struct frame_match *match, enum diff_order order);
void diff_paths_add(struct diff_paths *p, enum path_side side, const struct diff_stack *stack);

/*
 * The tree, summed up, which the caller frees; @p is freed. Call sites that are not told apart are
 * named with their lines in the new profile ("f (a.c:7, 12)"), in the old one if it alone has them.
 */
struct path_tree *diff_paths_finish(struct diff_paths *p);

#endif
