/*
 * Finds the block that contains an address, for leak checks: built once from sorted blocks, and
 * used for every word that looks like a pointer.
 *
 * A radix tree over 47 bits of address: 1 GiB > 2 MiB > 1 KiB. An entry of the upper levels refers
 * to the block that covers its whole range, or to a table of the next level. The lowest level has a
 * bit for each 16 bytes in which a block starts, and the number of blocks that start before it. So
 * a pointer to the start of a block, the most common case, takes one cache line, and the blocks are
 * not read.
 */
#ifndef PTMEM_LEAK_BLOCK_INDEX_H
#define PTMEM_LEAK_BLOCK_INDEX_H

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/types.h"

#define BLOCK_INDEX_ADDRESS_BITS ARCH_ADDRESS_BITS
#define BLOCK_INDEX_NONE UINT32_MAX

/* A block, with an id of its owner's. */
struct leakcheck_block {
	taddr_t addr;
	uint64_t size : 54; /* 0 counts as 1 */
	uint64_t us : 10;   /* microseconds after time */
	uint32_t leaf, time; /* ms */
};
#define LEAKCHECK_SIZE_MAX ((UINT64_C(1) << 54) - 1)

static inline taddr_t leakcheck_block_end(const struct leakcheck_block *b)
{
	uint64_t size = b->size ? b->size : 1;
	taddr_t end;

	return __builtin_add_overflow(b->addr, size, &end) ? UINT64_MAX : end;
}

/* 1 KiB of memory. */
struct block_granule {
	uint64_t starts; /* a bit for each 16 bytes in which a block starts */
	uint32_t before; /* number of blocks that start before; 0 also if none overlaps this */
	bool is_odd;     /* a block starts at an address that is not a multiple of 16 */
};

struct block_index {
	/*
	 * the caller's; ascending, disjoint: elements of @each bytes that begin with two words,
	 * whose lower 48 bits are the address and the size
	 */
	const uint8_t *block;
	size_t each;
	uint32_t count;
	uint32_t *top;                       /* by 1 GiB */
	VEC(uint32_t) middle;                /* all tables, consecutive */
	VEC(struct block_granule) low;
};

/* @block must outlive @x. At most 1 << 31 blocks, below 1 << BLOCK_INDEX_ADDRESS_BITS. */
void block_index_init(struct block_index *x, const struct leakcheck_block *block, uint32_t count);
void block_index_deinit(struct block_index *x);

/* The same blocks are at @block from now on, in elements of @each bytes. */
void block_index_move(struct block_index *x, const void *block, size_t each);

/*
 * A look-up in two steps, so that the second need not wait for memory: first the place of the
 * answer, which is prefetched, then the answer.
 */
uint64_t block_index_place(const struct block_index *x, taddr_t addr);

/*
 * The block that contains @addr, or BLOCK_INDEX_NONE. @place: of @addr. *@is_start_out: whether it
 * starts at @addr.
 */
uint32_t block_index_at(const struct block_index *x, uint64_t place, taddr_t addr,
			bool *is_start_out);

static inline uint32_t block_index_find(const struct block_index *x, taddr_t addr,
					bool *is_start_out)
{
	return block_index_at(x, block_index_place(x, addr), addr, is_start_out);
}

/* Sorts blocks by address. */

/* Sorts @count blocks by address; blocks with the same address, largest first. */
void block_order_sort(struct leakcheck_block *block, size_t count);

#endif
