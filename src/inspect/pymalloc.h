/*
 * The arenas of Python's allocator (pymalloc_find.h), pool by pool:
 *
 *	pool in use     | header | block | block | ... | rest |   a slab
 *	free pool       |                                     |   used before, or never
 *
 * A pool says how many of its blocks are in use, and lists the free ones that were in use before. A
 * thread in the middle of an allocation makes the two differ: such a pool counts as broken.
 */
#ifndef PTMEM_INSPECT_PYMALLOC_H
#define PTMEM_INSPECT_PYMALLOC_H

#include "inspect/pymalloc_find.h"
#include "inspect/spans.h"

/* The pools of one size of blocks. */
struct pymalloc_class {
	uint64_t pools, live, free; /* blocks */
};

struct pymalloc_range {
	taddr_t start, end;
};

struct pymalloc {
	enum pymalloc_found found;
	struct pymalloc_layout layout;
	struct slabs slabs;                     /* sorted */
	VEC(struct pymalloc_range) arenas;      /* ascending, disjoint */
	struct pymalloc_class classes[PYMALLOC_CLASSES];
	uint64_t free_pools;
	uint32_t interpreters;                  /* with allocators of their own */
	bool has_lost;                          /* others have pools that could not be read */
	bool has_hooks;                         /* for debugging: blocks are in larger ones */
};

/* What @taken covers is not looked at. pymalloc_deinit frees @out. */
void pymalloc_read(const struct allocator_input *in, const struct spans *taken,
		   struct pymalloc *out);
void pymalloc_deinit(struct pymalloc *p);

#endif
