/*
 * Address ranges that may nest or overlap, such as compilation units and inlined calls, and
 * look-ups of the ranges that contain an address.
 */
#ifndef PTMEM_SYMBOLS_RANGES_H
#define PTMEM_SYMBOLS_RANGES_H

#include "base/types.h"

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t value;  /* for the caller */
	/* index + 1 of the nearest earlier range that may also contain lo; 0 = none */
	uint32_t parent;
};

struct ranges {
	struct range *data;
	size_t count, capacity;
	bool is_sorted;
};

/* Ignores empty ranges. */
void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, uint32_t value);

/* Sorts the ranges; call it between the last add and the first look-up. Of two equal ranges the one
 * with the higher value is the inner one. */
void ranges_sort(struct ranges *r);

/* The innermost (last to start) range that contains @addr, or NULL. */
const struct range *ranges_find(const struct ranges *r, uint64_t addr);

/* The next range outside of @inner that contains @addr, or NULL. */
const struct range *ranges_outer(const struct ranges *r, const struct range *inner, uint64_t addr);

void ranges_deinit(struct ranges *r);

#endif
