/* The recorder's room in the ring: reserved by one instruction, committed by a record's mark. */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_RING_H
#define PTMEM_ARCH_RECORDER_RECORDER_RING_H

#include "arch/recorder/recorder.h"

enum wait_end { WAIT_GONE, WAIT_ROOM, WAIT_AGAIN };

INLINE int has_ring_room(const struct pad_control *c, uint64_t end)
{
	uint64_t room = READ(c->room); /* before the tail */
	return end - READ(c->tail) <= room;
}

INLINE uint64_t *ring_place(const struct pad_control *c, uint64_t position)
{
	char *p = (char *)c->ring + (position & c->ring_mask);

	cpu_prefetch(p);
	if (!p)
		__builtin_unreachable();
	return (uint64_t *)p;
}

/* Room for @size bytes, at *position_out; NULL: the reader is gone. */
INLINE uint64_t *reserve(struct pad_control *c, uint64_t size, uint64_t *position_out)
{
	uint64_t position;

	for (;;) {
		int end;
		position = size;
		cpu_add(&c->head, &position, c->shared);
		if (likely(has_ring_room(c, position + size)))
			break;
		end = pad_wait(c, position, position + size);
		cpu_forget_return();
		if (end == WAIT_GONE)
			return 0;
		if (end == WAIT_ROOM)
			break;
	}
	*position_out = position;
	return ring_place(c, position);
}

INLINE void commit(const struct pad_control *c, uint64_t *p, uint64_t position, uint32_t slot,
		   const struct pad_head *head, enum pad_record_type type)
{
	uint64_t mark =
		pad_mark(position, c->key, slot << 8 | (uint32_t)head->probe.function << 4 | type);
	__atomic_store_n(p, mark, __ATOMIC_RELEASE);
}

INLINE uint64_t tail_size(const struct pad_control *c)
{
	return c->flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* @at: the call's return slot. */
INLINE void record_block(struct pad_control *c, const struct pad_slot *slot,
			 const struct pad_head *head, uint64_t block, uint64_t at,
			 enum pad_record_type type)
{
	uint64_t position, *p = reserve(c, 16 + tail_size(c), &position);
	if (unlikely(!p))
		return;
	p[1] = block;
	if (c->flags & PAD_STACK_POINTER)
		p[2] = at + CPU_RETURN_SIZE;
	commit(c, p, position, slot->index, head, type);
}

/* The slot is free again. */
INLINE void finish(struct pad_slot *slot)
{
	barrier();
	WRITE(slot->guard, 0);
}

/*
 * Writes the record of @value, for which a short way (arch/CPU/short_template.h) has reserved 16
 * bytes at slot->reserved, once there is room.
 */
INLINE void record_reserved(struct pad_control *c, struct pad_slot *slot,
			    const struct pad_head *head, uint64_t value)
{
	uint64_t position = slot->reserved, *p = 0;
	int end = pad_wait(c, position, position + 16);

	cpu_forget_return();
	if (end == WAIT_ROOM)
		p = ring_place(c, position);
	else if (end == WAIT_AGAIN)
		p = reserve(c, 16, &position);
	if (p) {
		p[1] = value;
		commit(c, p, position, slot->index, head, head->mark & 15);
	}
	finish(slot);
}

#endif
