/*
 * mimalloc 2.0.3 to 2.4 in their release form (64 bits); 2.0.3 is as 2.0.4:
 *
 *	segment     at a multiple of its size, larger only for a huge block; slices of 64 KiB, the
 *	            first of them its own. Key: its cookie ^ its address, the same for all
 *	page        some adjacent slices with blocks of one size; described at its first slice.
 *	            A size of 0: the slices are free
 *	lists       in each page: free, freed by its thread, freed by other threads; in each heap:
 *	            freed by other threads while a page was full. A block's first word is the link
 *
 * The segment of an ended thread has no thread, and its pages no heap. A segment without pages and
 * thread is kept for later.
 *
 *	offsets              2.0.4    2.0.9    2.1.4    2.1.8
 *	used pages; cookie   312; 320 208; 216 208; 216 216; 224
 *	slices, own, kind    328      224      224      248
 *	entries; thread      360; 352 248; 256 248; 256 272; 280
 *	pages; of bytes      368; 80  264; 80  264; 96  288; 96
 *
 * The blocks of a page begin after 128 bytes (2.0.4) or 384 (2.0.9) if they have up to 1024 bytes;
 * after 3 blocks of up to 64 bytes, or one of up to 512 (2.1.0); from 2.1.4 on the page says where.
 *
 * Where an aligned block begins in its place is not recorded, only that a page has such blocks.
 * 2.0.3 keeps blocks that are aligned to more than 2 MiB, although the program frees them.
 */
#ifndef PTMEM_INSPECT_MIMALLOC_H
#define PTMEM_INSPECT_MIMALLOC_H

#include "inspect/allocators.h"

bool mimalloc_find(const struct allocator_input *in, struct allocator *out);

#endif
