/*
 * The size of a block in Massif: the payload P of its allocator for a request of S bytes,
 * independent of the real allocator (doc/massif.md 2.5).
 */
#ifndef PTMEM_PROFILE_CAPACITY_H
#define PTMEM_PROFILE_CAPACITY_H

#include "base/types.h"

#define CAPACITY_ALIGNMENT 16u         /* malloc's alignment */
#define CAPACITY_SUPERBLOCK 4194304u   /* a block that does not fit here gets whole pages */
#define CAPACITY_OVERHEAD 64u          /* superblock header 32, block overhead 32 */

/* P of a request for @size bytes aligned to @align (raised to a power of two, at least 16). */
static inline uint64_t capacity_of(uint64_t size, uint64_t align)
{
	if (size > UINT64_MAX >> 1 || align > UINT64_MAX >> 2)
		return size; /* no such block exists; only keeps the sums defined */
	uint64_t p = ROUND_UP(size, CAPACITY_ALIGNMENT);
	if (p + CAPACITY_OVERHEAD > CAPACITY_SUPERBLOCK)
		p = ROUND_UP(p + CAPACITY_OVERHEAD, PAGE_SIZE_MIN) - CAPACITY_OVERHEAD;
	if (align <= CAPACITY_ALIGNMENT)
		return p;
	uint64_t power = CAPACITY_ALIGNMENT;
	while (power < align)
		power *= 2;
	return p + power / 2; /* anywhere in [P + 16, P + A] in Massif; we use the middle */
}

#endif
