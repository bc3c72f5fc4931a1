/*
 * jemalloc's extents (64 bits, 48 of an address in use), by the tree that leads from each page to
 * the description of its extent:
 *
 *	root        2^18 pointers to leaves, by address >> 30; in the library's data
 *	leaf        2^18 words, by address >> 12: of an extent's first and last page, and each
 *	            of a slab. 16 bits size class, 48 bits description; flags in its low bits
 *
 *	description
 *	0  bits: 12 slab; then of several bits, from
 *	     5.3  5.2
 *	     17   16   state: 0 in use, dirty, muzzy, retained
 *	     20   18   size class
 *	     28   26   free regions
 *	8  address; of a large block: of its first byte, within its first page
 *	16 size; the low 12 bits are others
 *	64 a slab's bits of 512 regions, 1 = free
 *
 * Class and pages of an extent in use must agree with the leaf. What jemalloc needs for itself is
 * in blocks at multiples of 2 MiB: 0 size, 16 a description of their unused ends.
 *
 * Threads' caches: see jemalloc_cache.h.
 */
#ifndef PTMEM_INSPECT_JEMALLOC_H
#define PTMEM_INSPECT_JEMALLOC_H

#include "inspect/allocators.h"

bool jemalloc_find(const struct allocator_input *in, struct allocator *out);

#endif
