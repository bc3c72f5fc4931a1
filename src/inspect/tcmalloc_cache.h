/*
 * tcmalloc's caches of threads, which also have the sizes of its size classes:
 *
 *	0       a list for each size class, 32 bytes each, 128 (2.7: 96) of them:
 *	        0 first block, 8 int number of blocks, 24 int size of blocks
 *	after   4 int most bytes, never 0
 *	them    32 (2.16 and later) or 48: next cache, the one before
 *
 * Sizes ascend from 0 of class 0, which has no blocks, to 256 kB. A variable of tcmalloc's has the
 * first cache.
 */
#ifndef PTMEM_INSPECT_TCMALLOC_CACHE_H
#define PTMEM_INSPECT_TCMALLOC_CACHE_H

#include "inspect/glibc.h"
#include "inspect/slabs.h"

#define TCMALLOC_CLASSES 128u

struct tcmalloc_caches {
	uint32_t size[TCMALLOC_CLASSES]; /* of the blocks of each class; 0 = no such class */
	uint32_t links;                  /* where a cache has the next one */
	VEC(taddr_t) list;
};

/* Finds those to which words of @data lead. tcmalloc_caches_deinit frees @out. */
bool tcmalloc_caches_find(struct inspect_memory *m, const struct glibc_range *data,
			  struct tcmalloc_caches *out);
void tcmalloc_caches_deinit(struct tcmalloc_caches *c);

/* Marks what is in them. @p is sorted. */
void tcmalloc_caches_read(struct inspect_memory *m, const struct tcmalloc_caches *c,
			  struct slabs *p);

#endif
