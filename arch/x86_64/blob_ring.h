/* The recorder's room in the ring: reserved by one instruction, committed by a record's mark. */
#ifndef PTMEM_ARCH_X86_64_BLOB_RING_H
#define PTMEM_ARCH_X86_64_BLOB_RING_H

#include "arch/x86_64/blob_base.h"

enum wait_end { WAIT_GONE, WAIT_ROOM, WAIT_AGAIN };

INLINE int has_ring_room(const struct pad_control *c, uint64_t end)
{
	uint64_t room = READ(c->room); /* before the tail */
	return end - READ(c->tail) <= room;
}

INLINE uint64_t *reserve(struct pad_control *c, uint64_t size, uint64_t *position_out)
{
	uint64_t position;
	char *p;

	for (;;) {
		int end;
		position = size;
		if (c->shared)
			__asm__ volatile("lock xadd %0, %1" : "+r"(position), "+m"(c->head));
		else
			__asm__ volatile("xadd %0, %1" : "+r"(position), "+m"(c->head));
		if (likely(has_ring_room(c, position + size)))
			break;
		end = pad_wait(c, position, position + size);
		if (end == WAIT_GONE)
			return 0;
		if (end == WAIT_ROOM)
			break;
	}
	p = (char *)c->ring + (position & (c->ring_size - 1));
	__asm__ volatile("prefetchw 512(%0)" ::"r"(p));
	*position_out = position;
	if (!p)
		__builtin_unreachable();
	return (uint64_t *)p;
}

INLINE void commit(const struct pad_control *c, uint64_t *p, uint64_t position, uint32_t slot,
		   const struct x86_pad_head *head, enum pad_record_type type)
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
			 const struct x86_pad_head *head, uint64_t block, uint64_t at,
			 enum pad_record_type type)
{
	uint64_t position, *p = reserve(c, 16 + tail_size(c), &position);
	if (unlikely(!p))
		return;
	p[1] = block;
	if (c->flags & PAD_STACK_POINTER)
		p[2] = at + 8;
	commit(c, p, position, slot->index, head, type);
}

/* The slot is free again. */
INLINE void finish(struct pad_slot *slot)
{
	barrier();
	WRITE(slot->guard, 0);
}

#endif
