/* A hash table from (leaf, born, died) to cells, which only grows. */
#include "profile/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_SLOTS 1024u

static bool is_empty(const struct cell *c)
{
	return !c->leaf; /* leaves are numbered from 1 */
}

static uint64_t order_of(const struct cell *c)
{
	return (uint64_t)c->leaf << 32 | (uint32_t)c->born << 16 | c->died;
}

static uint32_t home_of_cell(const struct cells *c, const struct cell *key)
{
	uint64_t h = order_of(key) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) & (c->slots - 1);
}

static struct cell *find_slot(const struct cells *c, const struct cell *key)
{
	uint32_t i = home_of_cell(c, key);

	while (!is_empty(&c->slot[i]) && order_of(&c->slot[i]) != order_of(key))
		i = (i + 1) & (c->slots - 1);
	return &c->slot[i];
}

static void grow(struct cells *c)
{
	struct cells old = *c;

	c->slots = old.slots ? old.slots * 2 : FIRST_SLOTS;
	c->slot = xcalloc(c->slots, sizeof(*c->slot));
	for (uint32_t i = 0; i < old.slots; i++)
		if (!is_empty(&old.slot[i]))
			*find_slot(c, &old.slot[i]) = old.slot[i];
	free(old.slot);
}

/* The slot of @key, zeroed if it is new. */
static struct cell *get_slot(struct cells *c, const struct cell *key)
{
	if (c->count >= c->slots / 4 * 3)
		grow(c);
	struct cell *slot = find_slot(c, key);

	if (is_empty(slot)) {
		*slot = (struct cell){key->leaf, key->born, key->died, 0, 0, 0};
		c->count++;
	}
	return slot;
}

void cells_add(struct cells *c, const struct cell *key)
{
	struct cell *slot = get_slot(c, key);

	slot->blocks += key->blocks;
	slot->bytes += key->bytes;
	slot->variance += key->variance;
}

void cells_set(struct cells *c, const struct cell *key)
{
	*get_slot(c, key) = *key;
}

void cells_merge(struct cells *c)
{
	struct cells old = *c;

	*c = (struct cells){0};
	for (uint32_t i = 0; i < old.slots; i++) {
		struct cell cell = old.slot[i];

		if (is_empty(&cell) || (!cell.blocks && !cell.bytes))
			continue;
		if (cell.born != CELL_BEFORE)
			cell.born /= 2;
		if (cell.died != CELL_NEVER)
			cell.died /= 2;
		if (cell.died == cell.born) {
			/* did not outlive its interval */
			cell.died = CELL_NEVER;
			cell.blocks = -cell.blocks;
			cell.bytes = -cell.bytes;
			cell.variance = -cell.variance;
		}
		cells_add(c, &cell);
	}
	free(old.slot);
}

void cells_forget(struct cells *c, uint32_t first)
{
	for (uint32_t i = 0; i < c->slots; i++) {
		struct cell *cell = &c->slot[i];

		if (cell_changed(cell) >= first)
			cell->blocks = cell->bytes = cell->variance = 0;
	}
}

uint32_t cells_used(const struct cells *c)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < c->slots; i++)
		used += c->slot[i].blocks || c->slot[i].bytes;
	return used;
}

void cells_clone(struct cells *to, const struct cells *from)
{
	*to = *from;
	if (from->slot)
		to->slot = xmemdup(from->slot, from->slots * sizeof(*from->slot));
}

void cells_deinit(struct cells *c)
{
	free(c->slot);
	*c = (struct cells){0};
}

static int compare_cells(const void *a, const void *b)
{
	uint64_t x = order_of(a), y = order_of(b);

	return x < y ? -1 : x > y;
}

size_t cells_sorted(const struct cells *c, struct cell **out)
{
	struct cell *all = xcalloc((size_t)c->count + 1, sizeof(*all));
	size_t n = 0;

	for (uint32_t i = 0; i < c->slots; i++)
		if (!is_empty(&c->slot[i]) && (c->slot[i].blocks || c->slot[i].bytes))
			all[n++] = c->slot[i];
	qsort(all, n, sizeof(*all), compare_cells);
	*out = all;
	return n;
}
