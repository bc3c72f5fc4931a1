/*
 * See cell_runs.h. A cell is the difference of its leaf to the one before, then its other values.
 * Numbers are written as in recordings (doc/format.md): 7 bits a byte, small ones first. Blocks,
 * bytes and variance may be negative: they are 2 * n, or -2 * n - 1.
 */
#include "profile/cell_runs.h"

#include <stdlib.h>

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
