/*
 * Copies of a ring for a fork.
 */
#include "tracee/pads/ring_fork.h"

#include <string.h>

#include "base/alloc.h"
#include "tracee/pads/ring_stack.h"

struct ring_unfinished *ring_save_unfinished(struct ring *r, uint32_t slot)
{
	uint64_t head = ring_head(r, slot);
	const struct ring_source *s = ring_source(r, slot);
	uint64_t at = head & s->mask, size = MIN(s->mask + 1 - at, r->memory->written.record_max);
	struct ring_unfinished *saved = xmalloc(sizeof(*saved) + size);

	saved->head = head;
	saved->size = size;
	memcpy(saved->data, s->bytes + at, size);
	return saved;
}

void ring_restore_unfinished(struct ring *r, uint32_t slot, const struct ring_unfinished *saved)
{
	struct ring_source *s = ring_source(r, slot);
	struct pad_ring *shared = pad_memory_ring(r->memory, slot);

	s->position = s->published = saved->head;
	shared->head = saved->head;
	shared->limit = saved->head + s->mask + 1;
	memcpy(pad_memory_ring_bytes(r->memory, slot) + (saved->head & s->mask), saved->data,
	       saved->size);
}

void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot)
{
	struct ring_mirror *m;

	*r = (struct ring){
		.arch = parent->arch,
		.clock = parent->clock,
		.broken = parent->broken,
		.number = parent->next_number,
		.next_number = parent->next_number,
	};
	m = ring_mirror(r, slot);
	if (slot >= parent->mirror_count || parent->mirror[slot].count == 0)
		return;
	m->count = m->capacity = parent->mirror[slot].count;
	m->frame = xmemdup(parent->mirror[slot].frame, m->count * sizeof(*m->frame));
	m->is_new_to_sink = true;
}
