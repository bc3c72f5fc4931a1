/*
 * Blocks in the order of their addresses.
 */
#ifndef PTMEM_LEAK_BLOCK_ORDER_H
#define PTMEM_LEAK_BLOCK_ORDER_H

#include "leak/block_index.h"

/* Sorts @count blocks by address; of those at one address, the largest comes first. */
void block_order_sort(struct leakcheck_block *block, size_t count);

#endif
