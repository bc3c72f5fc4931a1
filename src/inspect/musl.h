/*
 * musl's malloc since 1.2.1 (mallocng, 64 bits):
 *
 *	context     0 secret, 56 first area, 64 last area; 928 bytes in libc's data
 *	area        0 secret, 8 next, 16 int slots, 24 descriptions of groups (meta), 40 bytes each;
 *	            one page
 *	meta        16 group or 0, 24 int available, 28 int freed: a bit for each of its slots,
 *	            32 bits: 5 last slot, 1 may be freed, 6 size class, 52 pages of its mapping
 *	group       0 its meta, 16 slots
 *
 * A slot that is neither available nor freed holds a block, or an inner group. The four bytes
 * before a slot say where the block begins:
 *
 *	-3          7 << 5: the block is 16 times the number at -2 after the slot's start, or a
 *	            multiple of 1 MiB more
 *	            else the block is at its start, and these are the bytes before the block:
 *	-4          1 if the offset is at -8, 32 bits
 *	-3          5 bits number of the slot; 3 bits unused bytes at its end, 5: it is written in
 *	            the last 4 bytes of the slot; 6: an inner group
 *	-2          offset from slot 0, in 16 bytes
 */
#ifndef PTMEM_INSPECT_MUSL_H
#define PTMEM_INSPECT_MUSL_H

#include "inspect/allocators.h"

bool musl_find(const struct allocator_input *in, struct allocator *out);

#endif
