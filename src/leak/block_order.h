/* Sorts blocks by address. */
#ifndef PTMEM_LEAK_BLOCK_ORDER_H
#define PTMEM_LEAK_BLOCK_ORDER_H

#include "leak/block_index.h"

/* Sorts @count blocks by address; blocks with the same address, largest first. */
void block_order_sort(struct leakcheck_block *block, size_t count);

#endif
