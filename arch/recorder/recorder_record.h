/* Shared by calls and markers: which frame they are in, and writing their records. */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_RECORD_H
#define PTMEM_ARCH_RECORDER_RECORDER_RECORD_H

#include "arch/recorder/recorder_ring.h"
#include "arch/recorder/recorder_sample.h"
#include "arch/recorder/recorder_walk.h"

/*
 * For the frame whose return slot is @at. GO_CALL: it is outermost on the thread *slot_out;
 * GO_NESTED: it is inside a call.
 */
INLINE int enter_frame(const struct pad_control *c, uint64_t at, uint64_t pc, uint64_t fp,
		       struct pad_slot **slot_out)
{
	struct pad_slot *slot;
	int way = enter_slot(c, at, &slot);

	if (way != GO_CALL)
		return way;
	*slot_out = slot;
	if (READ(slot->return_at)) {
		const struct pad_step call = { .at = at, .pc = pc, .fp = fp };
		int nested = pad_nesting(c, slot, &call);
		if (nested == NESTED)
			return GO_NESTED;
		if (nested != STALE)
			return trap(slot,
				    nested == PASSED_BY ? PAD_REASON_STALE : PAD_REASON_IN_CALL);
	}
	return GO_CALL;
}

/* The same for the caller of the function whose pad uses @stack. */
INLINE int enter(struct pad_stack *stack, const struct pad_head *head, uint64_t fp,
		 struct pad_slot **slot_out)
{
	return enter_frame(head_control(head), cpu_place(stack), stack->return_slot,
			   fp, slot_out);
}

/* return_at first: from then on a signal handler does not change the slot. */
INLINE void begin_call(struct pad_stack *stack, const struct pad_head *head, struct pad_slot *slot)
{
	WRITE(slot->return_at, call_return_at(stack));
	barrier();
	slot->kind = head->probe.is_open ? PAD_ALLOC : head->probe.kind;
	slot->return_pc = stack->return_slot;
	slot->arg[0] = cpu_argument(stack, 0);
	slot->arg[1] = cpu_argument(stack, 1);
	slot->arg[2] = cpu_argument(stack, 2);
	WRITE(slot->return_to, head->after);
}

/* The slot of the call or marker with @return_at; NULL: it was released. */
INLINE struct pad_slot *leaving_slot(const struct pad_control *c, uint64_t return_at)
{
	struct pad_slot *slot = find_slot(c);
	return likely(slot && slot->return_at == return_at) ? slot : pad_find_call(c, return_at);
}

INLINE uint64_t block_size(const struct pad_slot *slot, const struct pad_probe *probe)
{
	uint64_t size = slot->arg[probe->size_arg];
	if (probe->count_arg != PAD_NO_ARG &&
	    __builtin_mul_overflow(size, slot->arg[probe->count_arg], &size))
		return UINT64_MAX;
	return size;
}

INLINE uint64_t block_result(const struct pad_stack *stack, const struct pad_slot *slot,
			     const struct pad_probe *probe)
{
	if (likely(probe->out_arg == PAD_NO_ARG))
		return cpu_result(stack);
	return (uint32_t)cpu_result(stack) ? 0 : *(const uint64_t *)slot->arg[probe->out_arg];
}

/* The bytes of the string at @block, which is the result of the call; 0: there is none. */
INLINE uint64_t string_size(uint64_t block)
{
	const char *text = (const char *)block;
	uint64_t size = 0;

	if (!block)
		return 0;
	while (READ(text[size++]))
		;
	return size;
}

/* Writes the fixed part of a record whose mark comes last. */
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

/* The record of the call of @slot is lost. */
INLINE void lose_return(const struct pad_head *head, struct pad_slot *slot)
{
	const struct pad_control *c = head_control(head);

	WRITE(slot->dirty, 0);
	if (slot->result)
		pad_lose_block(c, slot, block_size(slot, &head->probe));
	else if (head->probe.kind == PAD_REALLOC)
		pad_lose_release(c, slot, slot->arg[head->probe.block_arg]);
	if (slot->result && is_sampling(c))
		pad_filter_forget(filter_of(c), slot->result);
}

/* pad_take_labels if there are any. */
INLINE int take_labels(struct pad_control *c, struct pad_slot *slot)
{
	return likely(!(c->flags & PAD_HAS_LABELS)) || pad_take_labels(c, slot);
}

/* The bytes of the list that was walked. */
INLINE uint64_t list_size(const struct pad_slot *slot)
{
	return (slot->walked - slot->list_kept) * sizeof(struct pad_listed_frame);
}

/* Marks the guessed frames of the steps' addresses, which end at @end. */
INLINE void mark_guesses(const struct pad_slot *slot, uint64_t *end, int64_t fresh)
{
	const struct pad_step *s = steps_of(slot);

	for (; fresh--; s++) {
		end--;
		if (s->uses_fp == PAD_STEP_GUESSED)
			*end |= PAD_GUESSED;
	}
}

/* Writes the addresses of the @fresh steps, outermost first, behind @r. Returns their end. */
INLINE uint64_t *write_steps(struct pad_record_block *r, const struct pad_slot *slot, int64_t fresh)
{
	uint64_t *p = (uint64_t *)(r + 1);

	for (int64_t i = fresh; i-- > 0;)
		*p++ = steps_of(slot)[i].pc;
	if (fresh > 0 && unlikely(slot->guessed)) {
		r->flags |= PAD_HAS_GUESSES;
		mark_guesses(slot, p, fresh);
	}
	return p;
}

/*
 * Writes a record for the frame with return slot @at. @fresh < 0: no incremental stack. @saved: the
 * record includes @raw bytes of the raw stack.
 */
INLINE void record_return(uint64_t at, const struct pad_head *head, struct pad_slot *slot,
			  uint32_t kept, int64_t fresh, const struct pad_saved *saved,
			  uint64_t raw)
{
	struct pad_control *c = head_control(head);
	uint64_t size = sizeof(struct pad_record_block) + (fresh > 0 ? (uint64_t)fresh * 8 : 0);
	struct ring_place place;
	uint64_t *p, sp = at + ARCH_RETURN_SIZE;
	struct pad_record_block *r;

	if (saved)
		size += PAD_RAW_REGS * 8 + raw;
	if (fresh >= 0 && slot->has_list)
		size += list_size(slot);
	size = record_size(c, size);
	if (fresh >= 0)
		WRITE(slot->dirty, 1);
	if (unlikely(!reserve(c, slot, size, &place))) {
		lose_return(head, slot);
		return;
	}
	r = (struct pad_record_block *)place.word;
	r->size = (uint32_t)size;
	r->flags = (uint16_t)((fresh >= 0 ? PAD_HAS_STACK : 0) | (saved ? PAD_HAS_RAW : 0));
	if (c->flags & PAD_SAMPLING && slot->is_sampled > 1)
		r->flags |= (uint16_t)((slot->is_sampled - 1) << PAD_FLAGS_SHIFT);
	r->fresh = (uint16_t)(fresh > 0 ? fresh : 0);
	r->kept = kept;
	r->raw = (uint32_t)raw;
	fill_block(r, slot, &head->probe);
	p = write_steps(r, slot, fresh);
	if (fresh >= 0 && slot->has_list && slot->walked) {
		r->flags |= PAD_HAS_VIRTUAL;
		r->raw = slot->list_kept;
	}
	if (fresh >= 0 && slot->has_list) {
		slot->list_end = slot->walked;
		pad_write_list(c, slot, p);
	} else if (fresh >= 0) {
		slot->listed = 0;
	}
	if (saved) {
		cpu_fill_regs(p, saved, sp, slot->return_pc);
		p += PAD_RAW_REGS;
		uint64_t words = raw / 8;
		const void *from = (const void *)sp;
		if (likely(head->probe.kind < PAD_REQUEST))
			cpu_copy_stack(p, from, words);
		else /* the marker's function may have set the direction flag */
			copy_words(p, from, words);
	}
	if (c->flags & PAD_STACK_POINTER)
		*(uint64_t *)((char *)r + size - PAD_TAIL) = sp;
	if (fresh >= 0)
		remember(slot, kept, (uint32_t)fresh);
	commit(&place, size, head,
	       head->probe.kind == PAD_REALLOC ? PAD_RECORD_REALLOC_END : PAD_RECORD_ALLOC);
	barrier();
	WRITE(slot->dirty, 0);
}

/* Whether the slot has room for @fresh frames after @kept, and the ring for such a record. */
INLINE int has_room(const struct pad_control *c, struct pad_slot *slot, uint32_t kept,
		    int64_t fresh)
{
	uint64_t check = kept ? frames_of(slot)[kept - 1].check + 1 : 0, max = slot->max_frames;

	if (unlikely(kept + (uint64_t)fresh > max ||
		     check + PAD_FRAME_CHECKS * (uint64_t)fresh > PAD_FRAME_CHECKS * max)) {
		note_too_deep(slot);
		return 0;
	}
	return fits_ring(c, slot, sizeof(struct pad_record_block) + 8 * (uint64_t)fresh);
}

/*
 * Whether to trap for a deep cache instead of writing a raw record. Not if a fiber has come from
 * another thread: ptmem would change this thread's slot.
 */
INLINE int needs_deep_cache(const struct pad_control *c, const struct pad_slot *slot)
{
	return slot->reason == PAD_REASON_DEEP && slot->may_request && slot == find_slot(c);
}

/*
 * Writes the raw record of the call or marker with return slot @at, and frees the slot. 0: it would
 * be too large, would lack a stack, or the thread needs a deep cache; slot->reason is the reason.
 */
INLINE int write_raw(uint64_t at, const struct pad_head *head, struct pad_slot *slot,
		     const struct pad_saved *saved)
{
	const struct pad_control *c = head_control(head);
	uint64_t raw = (slot->stack_high - at - ARCH_RETURN_SIZE) & ~7ull;
	int64_t fresh = -1;
	uint32_t kept = 0;

	if (c->flags & PAD_VERIFY) {
		fresh = walk(c, slot, at, cpu_saved_fp(saved), 0, &kept);
		if (fresh >= 0 && !has_room(c, slot, kept, fresh))
			fresh = -1;
	}
	if (needs_deep_cache(c, slot) || slot->reason == PAD_REASON_VIRTUAL)
		return 0;
	slot->has_list = 0;
	slot->reason = PAD_REASON_SWITCH;
	if (slot->is_switched || READ(slot->is_apart) || READ(c->flags) & PAD_SWITCHES)
		return 0;
	slot->reason = PAD_REASON_LARGE;
	if (!fits_ring(c, slot, sizeof(struct pad_record_block) + PAD_RAW_REGS * 8 + raw +
					8 * (uint64_t)(fresh > 0 ? fresh : 0)))
		return 0;
	record_return(at, head, slot, kept, fresh, saved, raw);
	finish(slot);
	return 1;
}

#endif
