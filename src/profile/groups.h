/*
 * Groups of leaves whose live bytes are summed up, for limits of a function's peak: a leaf is in a
 * group if its call path has the function. A leaf may be in several.
 *
 * The state at a group's peak is not copied: a leaf saves its bytes at its first change after a
 * new peak, whose number is the group's epoch.
 */
#ifndef PTMEM_PROFILE_GROUPS_H
#define PTMEM_PROFILE_GROUPS_H

#include "base/alloc.h"
#include "base/types.h"

struct group_leaf {
	uint64_t epoch;            /* of at_peak; 0 = the leaf is not in the group */
	uint64_t at_peak;
};

struct leaf_group {
	uint64_t live, peak;       /* bytes */
	uint64_t epoch;            /* incremented with each new peak; from 1 */
	VEC(struct group_leaf) leaf; /* by leaf */
};

struct groups {
	size_t count;
	bool *is_in;               /* scratch space, by group */
	struct leaf_group group[];
};

struct groups *groups_new(size_t count);
struct groups *groups_clone(const struct groups *g); /* NULL gives NULL */
void groups_free(struct groups *g);                  /* may be NULL */
/* Leaf @index was created, without values, and is in those groups of g->is_in. */
void groups_add_leaf(struct groups *g, uint32_t index);
/* The live bytes of leaf @index are about to change: they are @bytes now. */
void groups_save(struct groups *g, uint32_t index, uint64_t bytes);
/* The live bytes of leaf @index have grown, or shrunk. */
void groups_grow(struct groups *g, uint32_t index, uint64_t bytes);
void groups_shrink(struct groups *g, uint32_t index, uint64_t bytes);
/* What leaf @index, which has @bytes now, had at the peak of @group; 0 if it is not in it. */
uint64_t groups_at_peak(const struct leaf_group *group, uint32_t index, uint64_t bytes);

#endif
