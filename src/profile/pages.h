/*
 * The mapped pages (pages-as-heap): which leaf owns which page, as disjoint
 * ranges in address order. Used by profile.c, and for counting mapping calls, whose ranges are in
 * bytes.
 */
#ifndef PTMEM_PROFILE_PAGES_H
#define PTMEM_PROFILE_PAGES_H

#include "base/alloc.h"
#include "base/types.h"

struct page_run {
	taddr_t start, end; /* of pages: multiples of PAGE_SIZE_MIN */
	uint32_t leaf;
};

struct pages {
	VEC(struct page_run) range;
};

void pages_deinit(struct pages *p);
void pages_clone(struct pages *to, const struct pages *from);

/* Bytes of [start, end) that are mapped. */
uint64_t pages_overlap(const struct pages *p, taddr_t start, taddr_t end);

/* Adds [start, end), of which nothing may be mapped. Merges adjacent ranges of the same leaf. */
void pages_add(struct pages *p, taddr_t start, taddr_t end, uint32_t leaf);

/* Removes [start, end); calls @gone for each piece that was mapped. */
void pages_remove(struct pages *p, taddr_t start, taddr_t end,
		  void (*gone)(void *ctx, uint32_t leaf, uint64_t bytes), void *ctx);

#endif
