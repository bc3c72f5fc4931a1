/*
 * tcmalloc of gperftools 2.7 to 2.18 (64 bits, 48 of an address in use, pages of 8 kB), by the tree
 * that leads from each of its pages to the description of its span:
 *
 *	root        2^17 pointers to leaves, by address >> 31; in the library's data
 *	leaf        2^18 pointers to descriptions, by address >> 13: of a span's first and last
 *	            page, and of each page between that is divided into blocks. What it has for
 *	            others within a span is out of date
 *
 *	description, 48 bytes
 *	0  number of its first page (address >> 13); 8 number of its pages
 *	16 next, 24 previous description on the list of its size class, see tcmalloc_central.h
 *	32 first free block, see tcmalloc_chain.h
 *	40 16 bits blocks that are not free; 8 bits size class, 0: one block, or a free span;
 *	   2 bits 0 in use, 1 free, 2 free and returned to the kernel; 1 bit sampled
 *
 * A block that tcmalloc samples is a span of its own: 32 points to the requested size. Its usable
 * size is that of other blocks. Sizes of classes are known from threads' caches, see
 * tcmalloc_cache.h. gperftools' debugging allocator, which has headers of its own in tcmalloc's
 * blocks, is not taken for tcmalloc.
 */
#ifndef PTMEM_INSPECT_TCMALLOC_H
#define PTMEM_INSPECT_TCMALLOC_H

#include "inspect/allocators.h"

bool tcmalloc_find(const struct allocator_input *in, struct allocator *out);

#endif
