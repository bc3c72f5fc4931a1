/*
 * Address ranges that may nest or overlap, and the question which of them hold an
 * address: compilation units, inlined calls.
 */
#ifndef PTMEM_SYMBOLS_RANGES_H
#define PTMEM_SYMBOLS_RANGES_H

#include "base/types.h"

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t value;  /* the caller's */
	/* index + 1 of the nearest earlier range that may also hold lo; 0 = none */
	uint32_t parent;
};

struct ranges {
	struct range *data;
	size_t count, capacity;
	bool is_sorted;
};

/* Empty ranges are left out. */
void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, uint32_t value);

/* Sorts; needed once between the last add and the first find. Of two equal ranges the
 * one with the higher value counts as the inner one. */
void ranges_sort(struct ranges *r);

/* The innermost (last to start) range that holds @addr, or NULL. */
const struct range *ranges_find(const struct ranges *r, uint64_t addr);

/* The next one outwards of @inner that holds @addr, or NULL. */
const struct range *ranges_outer(const struct ranges *r, const struct range *inner, uint64_t addr);

void ranges_deinit(struct ranges *r);

#endif
