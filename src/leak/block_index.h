/*
 * Which block does an address lie in? For leak checks: built once over blocks in
 * the order of their addresses, asked for every word that looks like a pointer.
 *
 * A radix tree over 47 bits of address: 1 GiB > 2 MiB > 512 bytes. An entry of any
 * level names the first block in that piece of memory, if one block covers all of
 * it or the piece is the smallest; so a block of any size costs little.
 */
#ifndef PTMEM_LEAK_BLOCK_INDEX_H
#define PTMEM_LEAK_BLOCK_INDEX_H

#include "base/types.h"
#include "base/vec.h"

#define BLOCK_INDEX_ADDRESS_BITS 47
#define BLOCK_INDEX_NONE UINT32_MAX

/* [start, end), not empty. */
struct block_span {
	taddr_t start, end;
};

/* Tables of one level, one after the other. */
struct block_index_tables {
	uint32_t *data;
	size_t count, capacity; /* entries */
};

struct block_index {
	const struct block_span *block; /* the caller's, ascending, disjoint */
	uint32_t count;
	uint32_t *top;                  /* by 1 GiB */
	struct block_index_tables middle, low;
};

/* @block must outlive @x; at most 1 << 31 blocks, below 1 << BLOCK_INDEX_ADDRESS_BITS. */
void block_index_init(struct block_index *x, const struct block_span *block, uint32_t count);
void block_index_deinit(struct block_index *x);

/* The block that holds @addr, or BLOCK_INDEX_NONE. */
uint32_t block_index_find(const struct block_index *x, taddr_t addr);

#endif
