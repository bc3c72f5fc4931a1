/*
 * Where is glibc's malloc? Its arenas (struct malloc_state) have no symbol in a stripped
 * library, so they are recognised by their form, the same since 2.10:
 *
 *	bins - 112   lock, flags, fastbins    (- 104 before 2.27)
 *	bins - 16    top                      the chunk at the heap's end
 *	bins - 8     last remainder
 *	bins         127 pairs: the ends of lists of free chunks; a pair that points to the
 *	             chunk that it would be part of is an empty list
 *	bins + 2032  bits of used bins
 *	bins + 2048  next arena               a ring, in which the main one is
 *	bins + 2072  bytes from the system
 *
 * All pointers in there are to chunks, not to blocks; but the last 8 bytes of a block may be
 * in the next chunk.
 *
 * The main arena's heap is what sbrk gave; the others have heaps of 64 MiB of address space, each
 * at a multiple of that, in a list.
 */
#ifndef PTMEM_LEAK_ARENAS_H
#define PTMEM_LEAK_ARENAS_H

#include "leak/heap_walk.h"
#include "leak/pointer_scan.h"

/* Memory in which chunks follow one another; as heap_walk_init has it. */
struct arena_heap {
	taddr_t start, end, top;
};

struct arenas {
	VEC(struct heap_part) states;
	VEC(struct arena_heap) heaps;
};

/*
 * Looks for a main arena in [@start, @end), a library's or program's data, and adds it and
 * those that it leads to. @read: of the target, which is stopped.
 */
void arenas_search(struct arenas *a, taddr_t start, taddr_t end, pointer_read_fn *read, void *ctx);

/* What was found, ascending and disjoint. */
void arenas_sort(struct arenas *a);

void arenas_deinit(struct arenas *a);

#endif
