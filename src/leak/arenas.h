/*
 * Finds the arenas of glibc's malloc (struct malloc_state). A stripped library has no symbols for
 * them, so they are recognized by their contents, which have the same layout since 2.10:
 *
 *	bins - 112   lock, flags, fastbins    (- 104 before 2.27; - 24 since 2.43, without fastbins)
 *	bins - 16    top                      the chunk at the heap's end
 *	bins - 8     last remainder
 *	bins         127 pairs: heads of lists of free chunks; a pair that points to the
 *	             chunk that it would be part of is an empty list
 *	bins + 2032  bits of used bins
 *	bins + 2048  next arena               a ring that includes the main arena
 *	bins + 2072  bytes from the system
 *
 * All these pointers are to chunks, not to blocks; but the last 8 bytes of a block may be in the
 * next chunk.
 *
 * The main arena's heap comes from sbrk. The others have linked heaps of 64 MiB of address space,
 * aligned to that size.
 */
#ifndef PTMEM_LEAK_ARENAS_H
#define PTMEM_LEAK_ARENAS_H

#include "leak/heap_walk.h"
#include "leak/pointer_scan.h"

/* Memory in which chunks follow one another; parameters for heap_walk_init. */
struct arena_heap {
	taddr_t start, end, top;
	bool is_main;           /* the main arena's */
	taddr_t limit;          /* of all but the main arena's: where the heap's memory ends */
};

struct arenas {
	VEC(struct heap_part) states;
	VEC(struct arena_heap) heaps;
};

/*
 * Looks for a main arena in [@start, @end), the data of a library or program. Adds it and all
 * arenas that it leads to. @read reads from the target, which must be stopped.
 */
void arenas_search(struct arenas *a, taddr_t start, taddr_t end, pointer_read_fn *read, void *ctx);

/* The heaps found, ascending and disjoint. */
void arenas_sort(struct arenas *a);

void arenas_deinit(struct arenas *a);

#endif
