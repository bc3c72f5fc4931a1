/* What calls and markers have in common: which frame they are in, and the records of what happened there. */
#ifndef PTMEM_ARCH_X86_64_BLOB_RECORD_H
#define PTMEM_ARCH_X86_64_BLOB_RECORD_H

#include "arch/x86_64/blob_ring.h"
#include "arch/x86_64/blob_walk.h"

/*
 * Of the frame whose return slot is @at. GO_CALL: it is outermost on the thread *slot_out;
 * GO_NESTED: it is inside a call.
 */
INLINE int enter_frame(const struct pad_control *c, uint64_t at, uint64_t pc, uint64_t fp,
		       struct pad_slot **slot_out)
{
	struct pad_slot *slot;

	if (is_off(c))
		return GO_STRAIGHT;
	slot = find_slot(c);
	if (unlikely(!slot))
		return GO_TRAP;
	*slot_out = slot;
	if (unlikely(at < slot->stack_low || at >= slot->stack_high))
		return trap(slot, PAD_REASON_BOUNDS);
	if (READ(slot->guard)) {
		const struct pad_step call = { .at = at, .pc = pc, .fp = fp };
		int nested = pad_nesting(c, slot, &call);
		if (nested == NESTED)
			return GO_NESTED;
		if (nested != STALE)
			return trap(slot,
				    nested == PASSED_BY ? PAD_REASON_STALE : PAD_REASON_GUARD);
	}
	return GO_CALL;
}

/* The slot of the call whose return slot is @at; NULL: its guard was given up. */
INLINE struct pad_slot *leaving_slot(const struct pad_control *c, uint64_t at)
{
	struct pad_slot *slot = find_slot(c);
	return likely(slot && slot->guard == at) ? slot : pad_find_guard(c, at);
}

INLINE uint64_t block_size(const struct pad_slot *slot, const struct pad_probe *probe)
{
	uint64_t size = slot->arg[probe->size_arg];
	if (probe->count_arg != PAD_NO_ARG &&
	    __builtin_mul_overflow(size, slot->arg[probe->count_arg], &size))
		return UINT64_MAX;
	return size;
}

/* Fixed part of a record whose mark comes last. */
INLINE void fill_block(struct pad_record_block *r, const struct pad_slot *slot,
		       const struct pad_probe *probe)
{
	r->result = slot->result;
	r->bytes = block_size(slot, probe);
	if (probe->kind == PAD_REALLOC)
		r->align = slot->arg[probe->block_arg];
	else
		r->align = probe->align_arg == PAD_NO_ARG ? probe->fixed_align :
							    slot->arg[probe->align_arg];
}

/* Without string instructions, and without a call of memcpy. */
INLINE void copy_words(uint64_t *to, const void *from, uint64_t count)
{
	for (const uint64_t *p = from; count--; to++, p++) {
		*to = *p;
		barrier();
	}
}

/*
 * Writes the record of what happened in the frame with return slot @at. @fresh < 0: no incremental
 * stack. @saved: the raw stack comes along, @raw bytes of it. 0 when the reader is gone.
 */
INLINE int record_return(uint64_t at, const struct x86_pad_head *head, struct pad_slot *slot,
			 uint32_t kept, int64_t fresh, const struct x86_pad_saved *saved,
			 uint64_t raw)
{
	struct pad_control *c = head_control(head);
	uint64_t size = sizeof(struct pad_record_block) + (fresh > 0 ? (uint64_t)fresh * 8 : 0);
	uint64_t position, *p, sp = at + 8;
	struct pad_record_block *r;

	if (saved)
		size += PAD_RAW_REGS * 8 + raw;
	size = ((size + 15) & ~15ull) + tail_size(c);
	if (fresh >= 0)
		WRITE(slot->dirty, 1);
	p = reserve(c, size, &position);
	if (unlikely(!p))
		return 0;
	r = (struct pad_record_block *)p;
	r->size = (uint32_t)size;
	r->flags = (uint16_t)((fresh >= 0 ? PAD_HAS_STACK : 0) | (saved ? PAD_HAS_RAW : 0));
	r->fresh = (uint16_t)(fresh > 0 ? fresh : 0);
	r->kept = kept;
	r->raw = (uint32_t)raw;
	fill_block(r, slot, &head->probe);
	p = (uint64_t *)(r + 1);
	for (int64_t i = fresh; i-- > 0;)
		*p++ = slot->step[i].pc;
	if (saved) {
		uint64_t regs[PAD_RAW_REGS] = {
			[3] = saved->rbx,  [6] = saved->rbp,	  [7] = sp,
			[12] = saved->r12, [13] = saved->r13,	  [14] = saved->r14,
			[15] = saved->r15, [16] = slot->return_pc};
		for (int i = 0; i < PAD_RAW_REGS; i++)
			*p++ = regs[i];
		uint64_t words = raw / 8;
		const void *from = (const void *)sp;
		if (likely(head->probe.kind < PAD_REQUEST))
			__asm__ volatile("rep movsq" : "+D"(p), "+S"(from), "+c"(words)::"memory");
		else /* the direction flag is whatever the marker's function has it */
			copy_words(p, from, words);
	}
	if (c->flags & PAD_STACK_POINTER)
		*(uint64_t *)((char *)r + size - PAD_TAIL) = sp;
	if (fresh >= 0)
		remember(slot, kept, (uint32_t)fresh);
	commit(c, (uint64_t *)r, position, slot->index, head,
	       head->probe.kind == PAD_REALLOC ? PAD_RECORD_REALLOC_END : PAD_RECORD_ALLOC);
	barrier();
	WRITE(slot->dirty, 0);
	return 1;
}

/* Whether the slot can take in @fresh frames behind @kept, and the ring such a record. */
INLINE int has_room(const struct pad_control *c, const struct pad_slot *slot, uint32_t kept,
		    int64_t fresh)
{
	uint32_t check = kept ? slot->frame[kept - 1].check + 1 : 0;
	return kept + fresh <= PAD_MAX_FRAMES && check + 3 * fresh <= PAD_MAX_CHECKS &&
	       sizeof(struct pad_record_block) + 8 * (uint64_t)fresh <= c->raw_max;
}

/*
 * The raw record of the call or marker with return slot
 * @at; the slot is free then. 0: it would be too large.
 */
INLINE int write_raw(uint64_t at, const struct x86_pad_head *head, struct pad_slot *slot,
		     const struct x86_pad_saved *saved)
{
	const struct pad_control *c = head_control(head);
	uint64_t raw = (slot->stack_high - at - 8) & ~7ull;
	int64_t fresh = -1;
	uint32_t kept = 0;

	if (c->flags & PAD_VERIFY) {
		fresh = walk(c, slot, saved->rbp, 0, &kept);
		if (fresh >= 0 && !has_room(c, slot, kept, fresh))
			fresh = -1;
	}
	if (sizeof(struct pad_record_block) + PAD_RAW_REGS * 8 + raw + 8 * (fresh > 0 ? fresh : 0) +
		    16 >
	    c->raw_max)
		return 0;
	record_return(at, head, slot, kept, fresh, saved, raw);
	finish(slot);
	return 1;
}

#endif
