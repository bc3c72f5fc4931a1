/*
 * Which block does an address lie in? For leak checks: built once over blocks in
 * the order of their addresses, asked for every word that looks like a pointer.
 *
 * A radix tree over 47 bits of address: 1 GiB > 2 MiB > 1 KiB. An entry of the upper
 * levels names the block that covers all of its memory, or a table of the next one. The
 * lowest has a bit for each 16 bytes in which a block starts, and the number of blocks
 * that start before it: so a pointer to a block's start, which is what most are, is
 * resolved by one line of memory, and the blocks are not read.
 */
#ifndef PTMEM_LEAK_BLOCK_INDEX_H
#define PTMEM_LEAK_BLOCK_INDEX_H

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"

#define BLOCK_INDEX_ADDRESS_BITS ARCH_ADDRESS_BITS
#define BLOCK_INDEX_NONE UINT32_MAX

/* A block with what its owner wants to know it by. */
struct leakcheck_block {
	taddr_t addr;
	uint64_t size;     /* 0 counts as 1 */
	uint32_t leaf, time;
};

static inline taddr_t leakcheck_block_end(const struct leakcheck_block *b)
{
	taddr_t end;

	return __builtin_add_overflow(b->addr, MAX(b->size, 1u), &end) ? UINT64_MAX : end;
}

/* 1 KiB of memory. */
struct block_granule {
	uint64_t starts; /* a bit for each 16 bytes in which a block starts */
	uint32_t before; /* the blocks that start before; 0 also if none touches this */
	bool is_odd;     /* a block starts elsewhere than at a multiple of 16 */
};

struct block_index {
	const struct leakcheck_block *block; /* the caller's, ascending, disjoint */
	uint32_t count;
	uint32_t *top;                       /* by 1 GiB */
	VEC(uint32_t) middle;                /* tables, one after the other */
	VEC(struct block_granule) low;
};

/* @block must outlive @x; at most 1 << 31 blocks, below 1 << BLOCK_INDEX_ADDRESS_BITS. */
void block_index_init(struct block_index *x, const struct leakcheck_block *block, uint32_t count);
void block_index_deinit(struct block_index *x);

/*
 * A question in two steps, so that the second does not wait for memory: where the answer
 * is (which is fetched into the cache), then the answer.
 */
uint64_t block_index_place(const struct block_index *x, taddr_t addr);

/*
 * The block that holds @addr, or BLOCK_INDEX_NONE. @place: of @addr. *@is_start_out: whether it
 * starts there.
 */
uint32_t block_index_at(const struct block_index *x, uint64_t place, taddr_t addr,
			bool *is_start_out);

static inline uint32_t block_index_find(const struct block_index *x, taddr_t addr,
					bool *is_start_out)
{
	return block_index_at(x, block_index_place(x, addr), addr, is_start_out);
}

#endif
