/*
 * The live blocks, and the size of a block in Massif, the capacity by which most need no room in
 * the table.
 */
#ifndef PTMEM_PROFILE_BLOCKS_H
#define PTMEM_PROFILE_BLOCKS_H

#include "base/alloc.h"
#include "base/types.h"

/*
 * The size of a block in Massif: the payload P of its allocator for a request of S bytes,
 * independent of the real allocator (doc/massif.md 2.5).
 */

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

/*
 * The live blocks: address -> size and owner. Open addressing; the largest
 * structure of ptmem, 16 bytes a slot, 21 with times. What a slot cannot hold
 * (addresses near 2^48 and beyond, sizes beyond 44 bits, an unusual capacity, a shift)
 * goes to a small side table.
 */

struct blocks;

struct block {
	taddr_t addr;
	uint64_t size;     /* S: as requested */
	uint64_t capacity; /* P: size plus slop (doc/massif.md 2.5) */
	uint32_t leaf;     /* owner, defined by the caller; below 1 << 31 */
	/* time of allocation; after 38 hours rounded down to 2 us, and so on; 0 unless kept */
	uint64_t time_us;
	/* of a sample: its interval is the smallest one, shifted by this (estimate.h) */
	uint8_t sample_shift;
	/* of a sample that the program itself took: the bytes for which it stands; 0 = its size */
	uint64_t weighted;
};

/*
 * @alignment: of plain allocations; a capacity equal to capacity_of(size, alignment) takes no
 * memory.
 */
struct blocks *blocks_new(bool keep_times, uint32_t alignment);
struct blocks *blocks_clone(const struct blocks *b);
void blocks_free(struct blocks *b);

/* Makes room for about @count more blocks at once, which is faster than growing step by step. */
void blocks_reserve(struct blocks *b, uint64_t count);

/*
 * Adds @block; its address must not be 0. An existing block at the address is replaced; it is
 * stored in *old_out (if not NULL) and true is returned.
 */
bool blocks_add(struct blocks *b, const struct block *block, struct block *old_out);

/* Finds or removes the block that starts at @addr; false if there is none. */
bool blocks_find(const struct blocks *b, taddr_t addr, struct block *out);
bool blocks_take(struct blocks *b, taddr_t addr, struct block *out);

uint64_t blocks_count(const struct blocks *b);
size_t blocks_memory(const struct blocks *b); /* bytes allocated for the tables */

/*
 * Calls @fn for every block, unordered, until it returns non-zero. The table must not change
 * meanwhile.
 */
int blocks_each(const struct blocks *b, int (*fn)(void *ctx, const struct block *block), void *ctx);

/*
 * Blocks in the middle of a realloc. Its first half takes the block out of its table, since from
 * then on the address may be given to another thread; its second half, which may never come, ends
 * or changes the block.
 */

/* Which table a block was taken from. */
enum held_from { HELD_UNKNOWN, HELD_COUNTED, HELD_IGNORED };

struct held_block {
	uint32_t thread;
	enum held_from from;
	struct block block; /* HELD_UNKNOWN: only the address */
};

struct held_blocks {
	VEC(struct held_block) list; /* in the order of their first halves */
};

/* The first one of @thread, or NULL. */
const struct held_block *held_find(const struct held_blocks *h, uint32_t thread);
/* The same, removed; false if there is none. */
bool held_take(struct held_blocks *h, uint32_t thread, struct held_block *out);

#endif
