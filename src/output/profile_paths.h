/*
 * A profile's leaves as call paths with one quantity, for folded stacks and flame graphs of a run.
 * Outermost caller first; frames of allocation functions and below main are left out as in massif
 * reports, and inlined functions have their own frames.
 */
#ifndef PTMEM_OUTPUT_PROFILE_PATHS_H
#define PTMEM_OUTPUT_PROFILE_PATHS_H

#include "output/path_tree.h"
#include "output/writer.h"

enum profile_quantity {
	PATHS_LIVE,   /* bytes still live */
	PATHS_PEAK,   /* bytes at the peak's snapshot */
	PATHS_TOTAL,  /* bytes ever allocated */
	PATHS_COUNT,  /* allocations ever made */
};

/*
 * Adds every leaf of @r to @t (PATH_NEW). Names are functions; one without a name is
 * "[file:line]", "[object]" or "[unknown]". -ENOENT when there is no peak. Does not update the
 * totals of @t.
 */
int profile_paths_add(struct path_tree *t, const struct report *r, enum profile_quantity quantity);

#endif
