/*
 * Copies of a ring for a fork.
 */
#include "tracee/pads/ring_fork.h"

#include <string.h>

#include "base/alloc.h"
#include "tracee/pads/ring_stack.h"

/* The bytes of @range that may be written to. */
static uint64_t range_size(const struct ring *r, const struct ring_range *range)
{
	uint64_t end = MIN(range->end, ring_limit(r));

	return end > range->start ? MIN(end - range->start, r->memory->layout.ring_size) : 0;
}

uint8_t *ring_save_deferred(const struct ring *r)
{
	uint8_t *saved, *p;
	size_t size = 0;

	for (size_t i = 0; i < r->deferred_count; i++)
		size += range_size(r, &r->deferred[i]);
	saved = p = xmalloc(size + 1);
	for (size_t i = 0; i < r->deferred_count; i++) {
		const struct ring_range *range = &r->deferred[i];
		memcpy(p, ring_at(r, range->start), range_size(r, range));
		p += range_size(r, range);
	}
	return saved;
}

void ring_restore_deferred(struct ring *r, const uint8_t *saved)
{
	for (size_t i = 0; i < r->deferred_count; i++) {
		const struct ring_range *range = &r->deferred[i];
		uint64_t size = range_size(r, range);
		uint8_t *to = ring_at(r, range->start);
		memcpy(to, saved, size);
		saved += size;
		/* committed by another thread meanwhile: the copy has only one thread */
		for (uint64_t p = 0; p < size; p += 16) {
			if (ring_committed_mark(r, range->start + p))
				memset(to + p, 0, sizeof(uint64_t));
		}
	}
}

void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot)
{
	struct ring_mirror *m;

	*r = (struct ring){
		.arch = parent->arch,
		.broken = parent->broken,
		.position = parent->position,
		.published = parent->published,
		.room = parent->room,
		.deferred_count = parent->deferred_count,
		.deferred_capacity = parent->deferred_count,
	};
	if (r->deferred_count)
		r->deferred = xmemdup(parent->deferred, r->deferred_count * sizeof(*r->deferred));
	m = ring_mirror(r, slot);
	if (slot >= parent->mirror_count || parent->mirror[slot].count == 0)
		return;
	m->count = m->capacity = parent->mirror[slot].count;
	m->frame = xmemdup(parent->mirror[slot].frame, m->count * sizeof(*m->frame));
	m->is_new_to_sink = true;
}
