/*
 * The sum of all releases is derived from the totals; the difference since the last call belongs to
 * a stack.
 */
#include "profile/releases.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"

struct releases {
	VEC(struct release) list;
	VEC(uint32_t) of_node;  /* index + 1 by node; 0 = none yet */
	uint64_t bytes, blocks; /* total so far */
};

struct releases *releases_new(void)
{
	return xcalloc(1, sizeof(struct releases));
}

struct releases *releases_clone(const struct releases *r)
{
	struct releases *c = releases_new();

	for (size_t i = 0; i < r->list.count; i++)
		*vec_add(&c->list) = r->list.data[i];
	for (size_t i = 0; i < r->of_node.count; i++)
		*vec_add(&c->of_node) = r->of_node.data[i];
	c->bytes = r->bytes;
	c->blocks = r->blocks;
	return c;
}

void releases_free(struct releases *r)
{
	if (!r)
		return;
	vec_deinit(&r->list);
	vec_deinit(&r->of_node);
	free(r);
}

static struct release *release_of(struct releases *r, uint32_t node)
{
	while (r->of_node.count <= node)
		*vec_add(&r->of_node) = 0;
	uint32_t *index = &r->of_node.data[node];

	if (!*index) {
		*vec_add(&r->list) = (struct release){.node = node};
		*index = (uint32_t)r->list.count;
	}
	return &r->list.data[*index - 1];
}

static void add(struct release_sum *sum, uint64_t bytes, uint64_t blocks)
{
	sum->bytes += bytes;
	sum->blocks += blocks;
}

void releases_note(struct releases *r, const struct profile_totals *totals, uint32_t node)
{
	if (!r)
		return;
	uint64_t bytes = totals->allocated_bytes + totals->earlier_bytes - totals->live_bytes;
	uint64_t blocks = totals->allocations + totals->earlier_blocks - totals->live_blocks;

	if (bytes == r->bytes && blocks == r->blocks)
		return;
	struct release *release = release_of(r, node);

	add(&release->all, bytes - r->bytes, blocks - r->blocks);
	add(&release->recent, bytes - r->bytes, blocks - r->blocks);
	r->bytes = bytes;
	r->blocks = blocks;
}

void releases_restart(struct releases *r)
{
	for (size_t i = 0; r && i < r->list.count; i++)
		r->list.data[i].recent = (struct release_sum){0};
}

uint32_t releases_count(const struct releases *r)
{
	return (uint32_t)r->list.count;
}

const struct release *releases_get(const struct releases *r, uint32_t i)
{
	return &r->list.data[i];
}
