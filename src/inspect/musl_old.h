/*
 * musl's malloc before 1.2.1, which later versions have as oldmalloc (64 bits):
 *
 *	bins        8 bytes: a bit for each list that is not empty; 64 lists, 24 bytes each: int
 *	            lock, int waiters, 8 first chunk, 16 last; in libc's data. A list that was never
 *	            used is 0; an empty one refers to itself, as to a chunk 8 bytes before it
 *	chunk       0 size of the one before, 8 size, each + 1 if it is in use; 16 block, or, if it
 *	            is free, next and previous chunk of its list. At 16 more than a multiple of 32
 *	area        chunks that follow one another; the first has no chunk before it, the last one
 *	            has no size: in memory of brk or mmap, or what is left of a page of a library's
 *	            data
 *
 * A chunk with a mapping of its own is 16 bytes after its start, which it has at 0, and not marked
 * as in use. An aligned block has another such header.
 */
#ifndef PTMEM_INSPECT_MUSL_OLD_H
#define PTMEM_INSPECT_MUSL_OLD_H

#include "inspect/allocators.h"

bool musl_old_find(const struct allocator_input *in, struct allocator *out);

#endif
