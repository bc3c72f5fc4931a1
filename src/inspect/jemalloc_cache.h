/*
 * jemalloc's caches of threads, which are among their variables, and verify each other:
 *
 *	5.3   cache      0 its slow part; 8 lists, 24 bytes each, one for each size class:
 *	                 0 next, pointer to a stack's pointer to a block; 20 where the stack ends,
 *	                 its low 16 bits
 *	      slow part  32 the lists; 160 memory of the stacks; 168 the cache
 *	                 (5.3.1: 224 and 232)
 *	5.2   cache      16, 1000 lists of 36 small and of large size classes, 24 bytes each: 4 how
 *	                 many blocks; 16 where the stack ends
 *	                 936 its small lists; 944 its large lists
 *	                 -48 in the thread's other variables: a table of its arenas
 *
 * The memory of the stacks and the table are blocks that are not the program's.
 */
#ifndef PTMEM_INSPECT_JEMALLOC_CACHE_H
#define PTMEM_INSPECT_JEMALLOC_CACHE_H

#include "inspect/allocators.h"

enum jemalloc_cache_form { JEMALLOC_CACHE_5_2, JEMALLOC_CACHE_5_3 };

/* Marks what is in the caches; out->slabs is sorted. */
void jemalloc_caches_read(const struct allocator_input *in, enum jemalloc_cache_form form,
			  struct allocator *out);

#endif
