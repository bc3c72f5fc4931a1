#include "profile/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void put(struct cell_run *r, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		*vec_add(&r->byte) = (uint8_t)(value | 128);
	*vec_add(&r->byte) = (uint8_t)value;
}

static void put_signed(struct cell_run *r, uint64_t value)
{
	put(r, value << 1 ^ -(value >> 63));
}

void cell_run_add(struct cell_run *r, const struct cell *c)
{
	put(r, c->leaf - r->leaf);
	put(r, c->born);
	put(r, CELL_NEVER - c->died);
	put_signed(r, c->blocks);
	put_signed(r, c->bytes);
	put_signed(r, c->variance);
	r->leaf = c->leaf;
	r->count++;
}

void cell_run_end(struct cell_run *r)
{
	r->byte.capacity = r->byte.count + 1;
	r->byte.data = xrealloc(r->byte.data, r->byte.capacity, 1);
}

void cell_run_deinit(struct cell_run *r)
{
	vec_deinit(&r->byte);
}

static uint64_t get(struct cell_source *s)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = *s->at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
}

static uint64_t get_signed(struct cell_source *s)
{
	uint64_t code = get(s);

	return code >> 1 ^ -(code & 1);
}

static void step(struct cell_source *s)
{
	struct cell *c = &s->next;

	if (s->at == s->end) {
		c->leaf = 0;
		return;
	}
	c->leaf += (uint32_t)get(s);
	c->born = (uint16_t)get(s);
	c->died = (uint16_t)(CELL_NEVER - get(s));
	c->blocks = get_signed(s);
	c->bytes = get_signed(s);
	c->variance = get_signed(s);
}

void cell_reader_add(struct cell_reader *rd, const struct cell_run *run)
{
	struct cell_source s = {.at = run->byte.data, .end = run->byte.data + run->byte.count};

	if (!run->count)
		return;
	step(&s);
	*vec_add(&rd->source) = s;
}

/* The smallest order of all; 0: there is none. */
static uint64_t find_least(const struct cell_reader *rd)
{
	uint64_t least = 0;

	for (size_t i = 0; i < rd->source.count; i++) {
		const struct cell *c = &rd->source.data[i].next;

		if (c->leaf && (!least || cell_order(c) < least))
			least = cell_order(c);
	}
	return least;
}

bool cell_reader_next(struct cell_reader *rd, struct cell *out)
{
	for (uint64_t order; (order = find_least(rd));) {
		struct cell sum = {0};

		for (size_t i = 0; i < rd->source.count; i++) {
			struct cell_source *s = &rd->source.data[i];

			if (!s->next.leaf || cell_order(&s->next) != order)
				continue;
			struct cell c = s->next;

			c.blocks += sum.blocks;
			c.bytes += sum.bytes;
			c.variance += sum.variance;
			sum = c;
			step(s);
		}
		*out = sum;
		if (sum.blocks || sum.bytes || sum.variance)
			return true;
	}
	return false;
}

void cell_reader_deinit(struct cell_reader *rd)
{
	vec_deinit(&rd->source);
}

/*
 * A hash table from (leaf, born, died) to cells, which only grows, or, with many cells and `packs`,
 * is emptied into a packed run when it is full. Cells of intervals that are over change rarely, so
 * most are in one run. Most cells are read in order, for which all runs and the table are merged.
 */

#define FIRST_SLOTS 1024u
#define PACKED_SLOTS 16384u /* a table of this size, 512 KB, does not grow */

static bool is_empty(const struct cell *c)
{
	return !c->leaf; /* leaves are numbered from 1 */
}

/* The slot of the cell with @order, or the empty one for it. */
static struct cell *find_slot(const struct cells *c, uint64_t order)
{
	uint32_t i = (uint32_t)(order * 0x9e3779b97f4a7c15ull >> 32) & (c->slots - 1);

	while (!is_empty(&c->slot[i]) && cell_order(&c->slot[i]) != order)
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
			*find_slot(c, cell_order(&old.slot[i])) = old.slot[i];
	free(old.slot);
}

/* -- packing -- */

static int compare_orders(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct cell_run pack_slots(const struct cells *c)
{
	uint64_t *order = xcalloc((size_t)c->count + 1, sizeof(*order));
	struct cell_run run = {0};
	size_t n = 0;

	for (uint32_t i = 0; i < c->slots; i++)
		if (!is_empty(&c->slot[i]))
			order[n++] = cell_order(&c->slot[i]);
	qsort(order, n, sizeof(*order), compare_orders);
	for (size_t i = 0; i < n; i++)
		cell_run_add(&run, find_slot(c, order[i]));
	free(order);
	cell_run_end(&run);
	return run;
}

/* Makes one run of those from number @first on. */
static void join_runs(struct cells *c, size_t first)
{
	struct cell_run joined = {0};
	struct cell_reader rd = {0};
	struct cell cell;

	for (size_t i = first; i < c->run.count; i++)
		cell_reader_add(&rd, &c->run.data[i]);
	while (cell_reader_next(&rd, &cell))
		cell_run_add(&joined, &cell);
	cell_reader_deinit(&rd);
	cell_run_end(&joined);
	while (c->run.count > first)
		cell_run_deinit(&c->run.data[--c->run.count]);
	*vec_add(&c->run) = joined;
}

/* So few runs remain that each cell is copied only some ten times. */
static void pack(struct cells *c)
{
	*vec_add(&c->run) = pack_slots(c);
	memset(c->slot, 0, c->slots * sizeof(*c->slot));
	c->count = 0;
	for (size_t n; (n = c->run.count) > 1; join_runs(c, n - 2))
		if (c->run.data[n - 2].byte.count >= 2 * c->run.data[n - 1].byte.count)
			break;
}

/* -- changes -- */

/* The slot of @key, zeroed if it is new. */
static struct cell *get_slot(struct cells *c, const struct cell *key)
{
	if (c->count >= c->slots / 4 * 3) {
		if (c->packs && c->slots >= PACKED_SLOTS)
			pack(c);
		else
			grow(c);
	}
	struct cell *slot = find_slot(c, cell_order(key));

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

/* Adds @cell to @to, where two intervals are one. */
static void add_merged(struct cells *to, struct cell cell)
{
	if (!cell.blocks && !cell.bytes && !cell.variance)
		return;
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
	cells_add(to, &cell);
}

void cells_merge(struct cells *c)
{
	struct cells old = *c;

	*c = (struct cells){.packs = old.packs};
	for (uint32_t i = 0; i < old.slots; i++)
		if (!is_empty(&old.slot[i]))
			add_merged(c, old.slot[i]);
	for (size_t i = 0; i < old.run.count; i++) {
		struct cell_reader rd = {0};
		struct cell cell;

		cell_reader_add(&rd, &old.run.data[i]);
		while (cell_reader_next(&rd, &cell))
			add_merged(c, cell);
		cell_reader_deinit(&rd);
		cell_run_deinit(&old.run.data[i]);
	}
	cells_deinit(&old);
}

void cells_forget(struct cells *c, uint32_t first)
{
	for (uint32_t i = 0; i < c->slots; i++) {
		struct cell *cell = &c->slot[i];

		if (cell_changed(cell) >= first)
			cell->blocks = cell->bytes = cell->variance = 0;
	}
}

uint32_t cells_bound(const struct cells *c)
{
	uint32_t bound = c->count;

	for (size_t i = 0; i < c->run.count; i++)
		bound += c->run.data[i].count;
	return bound;
}

uint32_t cells_used(struct cells *c)
{
	struct cells_reader rd;
	struct cell cell;
	uint32_t used = 0;

	if (c->packs && c->count)
		pack(c);
	if (c->run.count > 1)
		join_runs(c, 0);
	cells_read(c, &rd);
	while (cells_next(&rd, &cell))
		used++;
	cells_read_end(&rd);
	return used;
}

static struct cell_run clone_run(const struct cell_run *r)
{
	struct cell_run run = *r;

	run.byte.data = xmemdup(r->byte.data, r->byte.capacity);
	return run;
}

void cells_clone(struct cells *to, const struct cells *from)
{
	*to = *from;
	if (from->slot)
		to->slot = xmemdup(from->slot, from->slots * sizeof(*from->slot));
	memset(&to->run, 0, sizeof(to->run));
	for (size_t i = 0; i < from->run.count; i++)
		*vec_add(&to->run) = clone_run(&from->run.data[i]);
}

void cells_deinit(struct cells *c)
{
	free(c->slot);
	vec_release(&c->run, e, cell_run_deinit(e));
	*c = (struct cells){.packs = c->packs};
}

/* -- reading -- */

void cells_read(const struct cells *c, struct cells_reader *rd)
{
	*rd = (struct cells_reader){.loose = pack_slots(c)};
	for (size_t i = 0; i < c->run.count; i++)
		cell_reader_add(&rd->all, &c->run.data[i]);
	cell_reader_add(&rd->all, &rd->loose);
}

bool cells_next(struct cells_reader *rd, struct cell *out)
{
	while (cell_reader_next(&rd->all, out)) {
		if (out->blocks || out->bytes)
			return true;
	}
	return false;
}

void cells_read_end(struct cells_reader *rd)
{
	cell_reader_deinit(&rd->all);
	cell_run_deinit(&rd->loose);
}

size_t cells_sorted(const struct cells *c, struct cell **out)
{
	struct cell *all = xcalloc((size_t)cells_bound(c) + 1, sizeof(*all));
	struct cells_reader rd;
	size_t n = 0;

	cells_read(c, &rd);
	while (cells_next(&rd, &all[n]))
		n++;
	cells_read_end(&rd);
	*out = all;
	return n;
}
