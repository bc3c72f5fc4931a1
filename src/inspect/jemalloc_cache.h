/*
 * jemalloc's caches of threads, which are among their variables, and verify each other:
 *
 *	5.3   cache      0 its slow part; 8 lists, 24 bytes each, one for each size class:
 *	                 0 next, pointer to a stack's pointer to a block; 20 where the stack ends,
 *	                 its low 16 bits
 *	      slow part  32 the lists; 160 memory of the stacks; 168 the cache
 *
 * The memory of the stacks is a block that is not the program's.
 */
#ifndef PTMEM_INSPECT_JEMALLOC_CACHE_H
#define PTMEM_INSPECT_JEMALLOC_CACHE_H

#include "inspect/allocators.h"

/* Marks what is in the caches; out->slabs is sorted. */
void jemalloc_caches_read(const struct allocator_input *in, struct allocator *out);

#endif
