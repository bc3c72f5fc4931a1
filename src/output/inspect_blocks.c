/* See inspect_blocks.h. Usable sizes: what malloc_usable_size would return. */
#include "output/inspect_blocks.h"

#include <inttypes.h>

void inspect_blocks_add(void *blocks, taddr_t addr, uint64_t usable)
{
	struct inspect_blocks *b = blocks;

	*vec_add(&b->list) = (struct inspect_block){addr, usable};
}

static int compare(const void *a, const void *b)
{
	const struct inspect_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void inspect_blocks_sort(struct inspect_blocks *b)
{
	if (b->list.count > 1)
		qsort(b->list.data, b->list.count, sizeof(*b->list.data), compare);
}

void inspect_blocks_write(FILE *file, struct inspect_blocks *b)
{
	inspect_blocks_sort(b);
	fputs("address,bytes\n", file);
	for (size_t i = 0; i < b->list.count; i++)
		fprintf(file, "%#" PRIx64 ",%" PRIu64 "\n", b->list.data[i].addr,
			b->list.data[i].size);
}
