/* See inspect_blocks.h. Sizes are those that malloc_usable_size would return. */
#include "output/inspect_blocks.h"

#include <inttypes.h>

#include "base/csv_text.h"
#include "output/inspect_types.h"

void inspect_blocks_add(void *blocks, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct inspect_blocks *b = blocks;

	*vec_add(&b->list) = (struct inspect_block){addr, usable, type, false};
}

void inspect_blocks_add_python(void *blocks, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct inspect_blocks *b = blocks;

	*vec_add(&b->list) = (struct inspect_block){addr, usable, type, true};
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

/* Names may have commas and quotes. */
static void put_type(FILE *file, const struct block_type *t)
{
	char text[INSPECT_TYPE_SIZE];

	fputs(",\"", file);
	csv_put_quoted(file, inspect_type_text(t, text));
	fputs("\"", file);
}

void inspect_blocks_write(FILE *file, struct inspect_blocks *b, const struct block_types *types)
{
	inspect_blocks_sort(b);
	fputs("address,bytes,type,allocator\n", file);
	for (size_t i = 0; i < b->list.count; i++) {
		const struct inspect_block *e = &b->list.data[i];

		fprintf(file, "%#" PRIx64 ",%" PRIu64, e->addr, e->size);
		put_type(file, &types->list.data[e->type]);
		fputs(e->is_python ? ",Python\n" : ",malloc\n", file);
	}
}
