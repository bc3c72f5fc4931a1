/*
 * Large blocks for which malloc made a mapping of their own:
 *
 *	mapping     word: bytes before the chunk (0, unless an alignment was asked for)
 *	            word: size of the chunk | 2, up to the end of the mapping
 *	            block
 *
 * The kernel joins neighbouring mappings, so one may begin at any page.
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
	uint64_t bytes;         /* of the mappings */
};

/*
 * Adds those in [@start, @end), anonymous memory in which no heap is. g->params tells how many
 * there are: none is looked for beyond these.
 */
void glibc_mmapped_find(struct inspect_memory *m, const struct glibc *g, struct glibc_range range,
			struct glibc_mmapped_list *out);

#endif
