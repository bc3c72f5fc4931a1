/* The positions of the rings' reader. */
#include "tracee/pads/ring.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "tracee/pads/ring_stack.h"

void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch,
	       struct tick_clock *clock)
{
	*r = (struct ring){
		.memory = memory, .arch = arch, .clock = clock, .number = 1, .next_number = 1};
}

void ring_deinit(struct ring *r)
{
	ring_free_mirrors(r);
	free(r->source);
	free(r->active);
	free(r->raw);
}

void ring_break(struct ring *r, const char *why)
{
	if (r->broken)
		return;
	r->broken = why;
	/* from now on pads record nothing, and threads do not wait for room */
	pad_memory_set_off(r->memory, true);
}

struct ring_source *ring_source(struct ring *r, uint32_t slot)
{
	for (; r->source_count <= slot; r->source_count++) {
		uint32_t i = (uint32_t)r->source_count;
		r->source = xgrow(r->source, &r->source_capacity, i + 1ul, sizeof(*r->source));
		r->source[i] = (struct ring_source){
			.bytes = pad_memory_ring_bytes(r->memory, i),
			.mask = pad_memory_ring_size(r->memory, i) - 1,
		};
	}
	return &r->source[slot];
}

uint64_t ring_head(struct ring *r, uint32_t slot)
{
	const struct ring_source *s = ring_source(r, slot);
	uint64_t head = __atomic_load_n(&pad_memory_ring(r->memory, slot)->head, __ATOMIC_ACQUIRE);

	if (head - s->published <= s->mask + 1 && head >= s->position && head % 16 == 0)
		return head;
	ring_break(r, "a ring's head is nowhere near what was written");
	return s->position;
}

#define NUMBER_MAX (1ull << (64 - PAD_MARK_LOW))

uint64_t ring_pending(struct ring *r)
{
	uint64_t next = __atomic_load_n(&r->memory->control->next_number, __ATOMIC_ACQUIRE);

	if (r->broken)
		return 0;
	if (next < r->next_number || next >= NUMBER_MAX) {
		ring_break(r, "the numbers of its records go back");
		return 0;
	}
	r->next_number = next;
	return next - r->number;
}

void ring_publish_slot(struct ring *r, uint32_t slot)
{
	struct ring_source *s = ring_source(r, slot);

	if (s->position == s->published)
		return;
	s->published = s->position;
	__atomic_store_n(&pad_memory_ring(r->memory, slot)->limit, s->published + s->mask + 1,
			 __ATOMIC_RELEASE);
}

void ring_publish(struct ring *r)
{
	for (uint32_t i = 0; i < r->source_count; i++)
		ring_publish_slot(r, i);
}
