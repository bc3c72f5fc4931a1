/* The blocks in use, one by one, as CSV: "address,bytes,type,allocator", ascending. */
#ifndef PTMEM_OUTPUT_INSPECT_BLOCKS_H
#define PTMEM_OUTPUT_INSPECT_BLOCKS_H

#include <stdio.h>

#include "base/types.h"
#include "base/vec.h"
#include "inspect/block_types.h"

struct inspect_block {
	taddr_t addr;
	uint64_t size;          /* usable */
	uint32_t type;          /* an index in struct block_types */
	bool is_python;         /* of Python's allocator, not malloc's */
};
struct inspect_blocks {
	VEC(struct inspect_block) list;
};

/* A heap_block_fn; @blocks: a struct inspect_blocks. */
void inspect_blocks_add(void *blocks, taddr_t addr, uint64_t usable, uint32_t type);
void inspect_blocks_add_python(void *blocks, taddr_t addr, uint64_t usable, uint32_t type);
void inspect_blocks_sort(struct inspect_blocks *b);
/* Sorts them before. */
void inspect_blocks_write(FILE *file, struct inspect_blocks *b, const struct block_types *types);

#endif
