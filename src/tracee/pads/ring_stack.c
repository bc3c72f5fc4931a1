/*
 * The mirrors of the slots' last stacks.
 */
#include "tracee/pads/ring_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ring_mirror *ring_add_mirror(struct ring *r, uint32_t slot)
{
	size_t count = slot + 1 + slot / 2;

	r->mirror = xrealloc(r->mirror, count, sizeof(*r->mirror));
	memset(r->mirror + r->mirror_count, 0, (count - r->mirror_count) * sizeof(*r->mirror));
	r->mirror_count = count;
	return &r->mirror[slot];
}

void ring_free_mirrors(struct ring *r)
{
	for (size_t i = 0; i < r->mirror_count; i++)
		free(r->mirror[i].frame);
	free(r->mirror);
}

void ring_reset_slot(struct ring *r, uint32_t slot)
{
	struct ring_mirror *m = ring_mirror(r, slot);

	m->count = 0;
	m->has_node = false;
	m->is_new_to_sink = false;
}

void ring_read_stack(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev)
{
	struct ring_mirror *m = ring_mirror(r, ev->path);
	const uint64_t *pc = word + sizeof(*block) / sizeof(*word);

	if (block->kept + block->fresh >= m->capacity)
		m->frame = xgrow(m->frame, &m->capacity, block->kept + block->fresh + 1u,
				 sizeof(*m->frame));
	for (uint32_t i = 0; i < block->fresh; i++)
		m->frame[block->kept + i] = ring_load(&pc[i]) - 1;
	m->count = block->kept + block->fresh;
	m->has_node = false;
	ev->frame = m->frame;
	ev->frame_count = (uint32_t)m->count;
	ev->kept = m->is_new_to_sink ? 0 : block->kept;
	m->is_new_to_sink = false;
}

void ring_read_same_stack(struct ring *r, struct heap_event *ev)
{
	struct ring_mirror *m = ring_mirror(r, ev->path);

	ev->frame = m->frame;
	ev->frame_count = (uint32_t)m->count;
	ev->kept = m->is_new_to_sink ? 0 : ev->frame_count;
	m->is_new_to_sink = false;
}
