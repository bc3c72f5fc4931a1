/*
 * The radix tree over blocks; block_index.h has the picture.
 *
 * Entries: 0 = nothing here; COVERED | block = that block covers the piece; else
 * the number of a table of the next level + 1, or, at the lowest level, the first
 * block that touches the piece, + 1.
 */
#include "leak/block_index.h"

#include <string.h>

#define COVERED (UINT32_C(1) << 31)
#define TOP_SHIFT 30
#define MIDDLE_SHIFT 21
#define LOW_SHIFT 9
#define TOP_SIZE (1u << (BLOCK_INDEX_ADDRESS_BITS - TOP_SHIFT))
#define MIDDLE_SIZE (1u << (TOP_SHIFT - MIDDLE_SHIFT))
#define LOW_SIZE (1u << (MIDDLE_SHIFT - LOW_SHIFT))

static uint32_t *add_table(struct block_index_tables *tables, uint32_t size, uint32_t *entry)
{
	vec_reserve(tables, tables->count + size);
	uint32_t *table = &tables->data[tables->count];

	memset(table, 0, size * sizeof(*table));
	*entry = (uint32_t)(tables->count / size) + 1;
	tables->count += size;
	return table;
}

static uint32_t *get_table(struct block_index_tables *tables, uint32_t size, uint32_t *entry)
{
	return *entry ? &tables->data[(size_t)(*entry - 1) * size] : add_table(tables, size, entry);
}

static bool covers(taddr_t addr, taddr_t end, unsigned shift)
{
	return !(addr & ((UINT64_C(1) << shift) - 1)) && end - addr >= UINT64_C(1) << shift;
}

/* Puts block @i, whose rest is [addr, end), into one piece of memory; returns where that ends. */
static taddr_t put_piece(struct block_index *x, uint32_t i, taddr_t addr, taddr_t end)
{
	uint32_t *entry = &x->top[addr >> TOP_SHIFT];

	if (covers(addr, end, TOP_SHIFT) && !*entry) {
		*entry = COVERED | i;
		return addr + (UINT64_C(1) << TOP_SHIFT);
	}
	entry = &get_table(&x->middle, MIDDLE_SIZE,
			   entry)[addr >> MIDDLE_SHIFT & (MIDDLE_SIZE - 1)];
	if (covers(addr, end, MIDDLE_SHIFT) && !*entry) {
		*entry = COVERED | i;
		return addr + (UINT64_C(1) << MIDDLE_SHIFT);
	}
	entry = &get_table(&x->low, LOW_SIZE, entry)[addr >> LOW_SHIFT & (LOW_SIZE - 1)];
	if (!*entry)
		*entry = i + 1;
	return ROUND_DOWN(addr, UINT64_C(1) << LOW_SHIFT) + (UINT64_C(1) << LOW_SHIFT);
}

void block_index_init(struct block_index *x, const struct block_span *block, uint32_t count)
{
	*x = (struct block_index){.block = block, .count = count};
	x->top = xcalloc(TOP_SIZE, sizeof(*x->top));
	for (uint32_t i = 0; i < count; i++)
		for (taddr_t addr = block[i].start; addr < block[i].end;)
			addr = put_piece(x, i, addr, block[i].end);
}

void block_index_deinit(struct block_index *x)
{
	free(x->top);
	vec_deinit(&x->middle);
	vec_deinit(&x->low);
}

uint32_t block_index_find(const struct block_index *x, taddr_t addr)
{
	if (addr >> BLOCK_INDEX_ADDRESS_BITS)
		return BLOCK_INDEX_NONE;
	uint32_t entry = x->top[addr >> TOP_SHIFT];

	if (entry && !(entry & COVERED))
		entry = x->middle.data[(size_t)(entry - 1) * MIDDLE_SIZE +
				       (addr >> MIDDLE_SHIFT & (MIDDLE_SIZE - 1))];
	if (entry & COVERED)
		return entry & ~COVERED;
	if (entry)
		entry = x->low.data[(size_t)(entry - 1) * LOW_SIZE +
				    (addr >> LOW_SHIFT & (LOW_SIZE - 1))];
	for (uint32_t i = entry - 1; entry && i < x->count && x->block[i].start <= addr; i++)
		if (addr < x->block[i].end)
			return i;
	return BLOCK_INDEX_NONE;
}
