/*
 * Large blocks that malloc mapped separately:
 *
 *	mapping     word: bytes before the chunk (0 unless an alignment was requested)
 *	            word: size of the chunk | 2, up to the end of the mapping
 *	            block
 *
 * Since 2.43 the chunk ends 16 bytes before the mapping, and 8 of them are the block's as in other
 * chunks; bit 0 of the first word says that the pages are huge.
 *
 * The kernel merges adjacent mappings, so such a block may begin at any page. Where the program has
 * called mprotect or madvise within it, it covers several mappings.
 */
#ifndef PTMEM_INSPECT_GLIBC_MMAPPED_H
#define PTMEM_INSPECT_GLIBC_MMAPPED_H

#include "inspect/glibc.h"

struct glibc_mmapped {
	taddr_t start, end;     /* of the mapping */
	taddr_t block;
};

struct glibc_mmapped_list {
	VEC(struct glibc_mmapped) list; /* ascending */
	uint64_t pages_left;    /* to be read for blocks that were moved; 0 = do not */
	uint64_t bytes;         /* of the mappings */
};

/* What malloc_usable_size returns for the block. */
uint64_t glibc_mmapped_usable(const struct glibc *g, const struct glibc_mmapped *b);

/*
 * Adds the blocks in [@start, @end), anonymous memory without a heap. g->params holds their total
 * number: the search stops there.
 */
void glibc_mmapped_find(struct inspect_memory *m, const struct glibc *g, struct glibc_range range,
			struct glibc_mmapped_list *out);

#endif
