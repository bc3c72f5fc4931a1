/*
 * mimalloc 3.6 in its release form (64 bits):
 *
 *	region   256 MiB, aligned; begins with a description (128 bytes) for each of its slices of
 *	         64 KiB, so that the first 8 slices have the descriptions
 *	page     adjacent slices with blocks of one size. The descriptions of its slices point to
 *	         the one that is in use: the first slice's own, or, for blocks of up to 10 KiB, one
 *	         at the start of the slice itself. Of a single block's only two slices' do
 *	arena    adjacent regions. What describes it follows the descriptions of its first region;
 *	         a bit for each slice that is free
 *
 * A page outside all arenas has a region of its own, or several: large blocks, and those that are
 * aligned to more than 64 KiB. Descriptions of pages that were freed remain: without thread, and
 * without a block in use. The pages of thread 8 have mimalloc's own variables of threads.
 *
 *	page    self 0, thread + flags 8, free 16, local free 24, size of a block 32, used 40 (u16),
 *	        where blocks begin, from here, 48, capacity 56 (u16), reserved 58 (u16), freed by
 *	        others + flag 64, arena 104, or region, size; slice 112 (u32), slices 116 (u32),
 *	        kind 120 (u32): 3 = region, 6 = arena
 *	arena   start 40, slices 48, own slices 56, lists of bits 112: free, committed, dirty, purge
 *
 * As in mimalloc 2 it is not recorded where an aligned block begins in its place.
 */
#ifndef PTMEM_INSPECT_MIMALLOC3_H
#define PTMEM_INSPECT_MIMALLOC3_H

#include "inspect/allocators.h"

bool mimalloc3_find(const struct allocator_input *in, struct allocator *out);

#endif
