/*
 * Pages of mimalloc: adjacent slices with blocks of one size. A page has three lists of free
 * blocks: free, freed by its thread, freed by other threads. A block's first word is the link.
 */
#ifndef PTMEM_INSPECT_MIMALLOC_PAGE_H
#define PTMEM_INSPECT_MIMALLOC_PAGE_H

#include "inspect/slabs.h"

struct mimalloc_page {
	taddr_t start, end, first; /* of the slices; of the blocks */
	uint64_t size;             /* of a block */
	uint32_t capacity, used;   /* blocks that were touched; that no list of its thread has */
	bool has_aligned;          /* blocks may begin after their places do */
	taddr_t free, local, foreign; /* the lists */
};

struct mimalloc_pages {
	struct inspect_memory *memory;
	struct slabs *slabs;
	uint64_t places_left;      /* more are not believed */
};

void mimalloc_pages_init(struct mimalloc_pages *p, struct inspect_memory *m, struct slabs *slabs);
/* Adds @page with its free blocks, and what contradicts itself to the slabs' broken. */
void mimalloc_pages_add(struct mimalloc_pages *p, const struct mimalloc_page *page);
/* Adds [@start, @end), which has no blocks. */
void mimalloc_pages_add_rest(struct mimalloc_pages *p, taddr_t start, taddr_t end,
			     enum inspect_row row);

#endif
