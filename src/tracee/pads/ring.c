/* The positions of the ring's reader. */
#include "tracee/pads/ring.h"

#include <stdlib.h>

#include "tracee/pads/ring_stack.h"

void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch)
{
	*r = (struct ring){ .memory = memory, .arch = arch };
	r->room = memory->layout.ring_size;
}

void ring_deinit(struct ring *r)
{
	ring_free_mirrors(r);
	free(r->deferred);
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

uint64_t ring_longest_queue(const struct ring *r)
{
	const struct pad_memory *m = r->memory;

	return (m->slots.count + 1ull) * (m->written.raw_max + 64ull);
}

uint64_t ring_pending(struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->memory->control->head, __ATOMIC_ACQUIRE);
	uint64_t pending = head - r->position;

	if (r->broken)
		return 0;
	if (pending <= r->memory->layout.ring_size + ring_longest_queue(r) && pending % 16 == 0)
		return pending;
	ring_break(r, "its ring's head is nowhere near what was written");
	return 0;
}

void ring_set_tail(struct ring *r, uint64_t tail)
{
	r->published = tail;
	__atomic_store_n(&r->memory->control->tail, tail, __ATOMIC_RELEASE);
}

void ring_set_room(struct ring *r, uint64_t room)
{
	r->room = room;
	__atomic_store_n(&r->memory->control->room, room, __ATOMIC_RELEASE);
}

/* Without deferred records the whole ring can be used again. */
static void end_jumps(struct ring *r)
{
	if (r->deferred_count > 0)
		return;
	ring_set_tail(r, r->position);
	ring_set_room(r, r->memory->layout.ring_size);
}

void ring_publish(struct ring *r)
{
	uint64_t tail = r->position;

	if (r->room < r->memory->layout.ring_size) {
		end_jumps(r);
		return;
	}
	for (size_t i = 0; i < r->deferred_count; i++)
		tail = MIN(tail, r->deferred[i].start);
	if (tail != r->published)
		ring_set_tail(r, tail);
}

uint64_t ring_free_bytes(struct ring *r)
{
	uint64_t used = ring_pending(r) + r->position - r->published;

	return used < r->room ? r->room - used : 0;
}

bool ring_has_room(struct ring *r)
{
	return r->broken || ring_pending(r) + r->position - r->published < r->room / 2;
}

bool ring_was_skipped(const struct ring *r, uint64_t start)
{
	return start < r->published;
}

bool ring_may_continue(const struct ring *r, uint64_t start, uint64_t end)
{
	return r->broken || ring_was_skipped(r, start) || end - r->published <= r->room;
}
