/*
 * How long blocks of a recording lived: the mean of those that were released, the share of those
 * that were not, and how old these are.
 */
#ifndef PTMEM_REPORT_LIFE_H
#define PTMEM_REPORT_LIFE_H

#include "recording/recording.h"

/* Blocks in the unit of LEAF_ALLOCATIONS; seconds are sums over blocks. */
struct life {
	uint64_t released, live;
	double lived, aged;
	bool is_guess;             /* lived is a sum of middles of buckets */
};

/* By row of LEAVES; the caller frees it. */
struct life *lives_of_leaves(const struct recording *r);
void life_add(struct life *to, const struct life *from);

static inline uint64_t life_blocks(const struct life *life)
{
	return life->released + life->live;
}

/* "12.0 ms, 90.0 % live, >= 3.20 s", "about 12.0 ms"; of at least one block; to be freed. */
char *life_text(const struct life *life);

#endif
