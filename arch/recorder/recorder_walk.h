/*
 * The recorder's incremental walk. The slot has the frames of the thread's last record, outermost
 * first, as checks: a word of the stack and its value. A frame is unchanged if its return address
 * and all frames outside of it are: a frame's CFA depends on the return address before it, and on
 * the frame pointer if the rule uses it (needs_fp; then the word in which the frame pointer was
 * saved is a check, too). So
 *	1. compare the checks from the outermost inwards; after a difference everything is unknown
 *	2. walk by rules from the innermost outwards, until a return slot is one of those from step
 *	   1
 *
 * A frame for which no rule is known yet may be left by its frame pointer (pad_guess_step). Then
 * only frames outside of it are remembered.
 *
 * A walk that comes to another stack, by RULE_SWITCH, is not remembered: that stack is memory which
 * the program may have given back when the next walk compares.
 */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_WALK_H
#define PTMEM_ARCH_RECORDER_RECORDER_WALK_H

#include "arch/recorder/recorder.h"

enum { STEP_OUT, STEP_END, STEP_UNKNOWN, STEP_SWITCH };

INLINE struct pad_check *checks_of(const struct pad_slot *slot)
{
	return (struct pad_check *)slot->check;
}

INLINE struct pad_frame *frames_of(const struct pad_slot *slot)
{
	return (struct pad_frame *)slot->frame;
}

INLINE struct pad_step *steps_of(const struct pad_slot *slot)
{
	return (struct pad_step *)slot->step;
}

/* The stack has more frames than the slot's cache. */
INLINE void note_too_deep(struct pad_slot *slot)
{
	if (slot->may_request)
		slot->reason = PAD_REASON_DEEP;
}

/* @high: the end of the stack. */
INLINE int is_in_stack(uint64_t high, uint64_t above, uint64_t at)
{
	return at > above && at < high && (at & 7) == 0;
}

/* Whether a word at @at can be of the frame whose place is @place, or of one outside of it. */
INLINE int is_in_frame(uint64_t high, uint64_t place, uint64_t at)
{
	return is_in_stack(high, place + ARCH_RETURN_SIZE - 1, at);
}

/* Where the return address is with which a frame is left, and the word there. */
INLINE uint64_t step_word_at(const struct pad_step *s)
{
#ifdef RULE_RETURN_SLOT
	return s->at;
#else
	return s->word_at;
#endif
}

INLINE uint64_t step_word(const struct pad_step *s)
{
#ifdef RULE_RETURN_SLOT
	return s->pc;
#else
	return *(const uint64_t *)s->word_at;
#endif
}

/* The CFA of a frame, and where the words of its rule count from. */
struct frame_end {
	uint64_t cfa, base;
};

/*
 * The frame with @rule, place @place and @end returns to *next, whose frame pointer is not set. 0:
 * the stack has no such word.
 */
INLINE int find_caller(const struct unwind_rule *rule, uint64_t high, uint64_t place,
		       struct frame_end end, struct pad_step *next)
{
	next->at = end.cfa - ARCH_RETURN_SIZE;
	if (unlikely(!is_in_stack(high, place, next->at)))
		return 0;
#ifdef RULE_RETURN_SLOT
	(void)rule;
	next->pc = *(const uint64_t *)next->at;
#else
	next->word_at = end.base + 8 * (uint64_t)(int64_t)rule->return_slot;
	if (rule->return_slot == RULE_LINK || !is_in_frame(high, place, next->word_at))
		return 0;
	next->pc = cpu_return_address(*(const uint64_t *)next->word_at);
#endif
	return 1;
}

#define SWITCH_DEPTH_MAX (1ull << 30) /* bytes; no goroutine's stack is larger */

/*
 * step() by RULE_SWITCH; *high becomes the end of the other stack. What leads to that is on this
 * one only if this is the switch that the thread's own g knows of. For an outer one, or in a thread
 * without g, the caller is unknown.
 */
INLINE int step_switch(const struct unwind_rule *rule, uint64_t *high, const struct pad_step *s,
		       struct pad_step *next)
{
	uint64_t sp = s->at + ARCH_RETURN_SIZE, own = 0, start, top, depth, cfa;
	uint64_t g_at = sp + 8 * (int64_t)rule->slot[SWITCH_G];
	uint64_t depth_at = sp + 8 * (int64_t)rule->slot[SWITCH_DEPTH];

	if (rule->own_g)
		own = *(const uint64_t *)(cpu_thread_pointer() + (int64_t)rule->own_g);
	if (!own || !is_in_stack(*high, s->at, g_at) || !is_in_stack(*high, s->at, depth_at))
		return STEP_UNKNOWN;
	start = *(const uint64_t *)(own + 8 * (int64_t)rule->slot[SWITCH_START]);
	if (((start - 8 * (int64_t)rule->slot[SWITCH_FRAME]) & ~15ull) != sp)
		return STEP_UNKNOWN;
	top = *(const uint64_t *)(*(const uint64_t *)g_at + 8 * (int64_t)rule->slot[SWITCH_TOP]);
	depth = *(const uint64_t *)depth_at;
	cfa = top - depth + (int64_t)rule->cfa_offset;
	if (depth > SWITCH_DEPTH_MAX ||
	    !find_caller(rule, top, top - depth - ARCH_RETURN_SIZE, (struct frame_end){cfa, cfa},
			 next))
		return STEP_UNKNOWN;
	next->fp = rule->saved & 1 ? *(const uint64_t *)(top - depth) : s->fp;
	*high = top;
	return unwind_is_end(next->pc) ? STEP_UNKNOWN : STEP_SWITCH;
}

/*
 * Moves from the frame of @s to its caller: *next gets the caller's place, the address in it and
 * its frame pointer; s gets the words on which this depends. *high: the end of the stack, which
 * changes with STEP_SWITCH.
 */
INLINE int step(const struct pad_control *c, uint64_t *high, struct pad_step *s,
		struct pad_step *next)
{
	const struct unwind_rule *rule =
		unwind_rule_find((const struct unwind_rule *)c->rules, c->rule_bits, s->pc);
	uint64_t cfa, base;

	if (unlikely(!rule))
		return STEP_UNKNOWN;
	s->fp_at = s->extra_at = 0;
	s->uses_fp = 0;
	switch (READ(rule->kind)) {
	case RULE_SP:
		cfa = base = s->at + ARCH_RETURN_SIZE + (int64_t)rule->cfa_offset;
		break;
	case RULE_FP:
		cfa = base = s->fp + (int64_t)rule->cfa_offset;
		s->uses_fp = 1;
		break;
	case RULE_FP_DEREF:
		base = s->fp;
		s->uses_fp = 1;
		s->extra_at = base + (int64_t)rule->cfa_offset;
		if (!is_in_frame(*high, s->at, s->extra_at))
			return STEP_UNKNOWN;
		s->extra_value = cfa = *(const uint64_t *)s->extra_at;
		break;
	case RULE_SP_DEREF:
		s->extra_at = s->at + ARCH_RETURN_SIZE + 8 * (int64_t)rule->slot[SWITCH_DEPTH];
		if (!is_in_frame(*high, s->at, s->extra_at))
			return STEP_UNKNOWN;
		s->extra_value = *(const uint64_t *)s->extra_at;
		cfa = base = s->extra_value + (int64_t)rule->cfa_offset;
		break;
	case RULE_SWITCH:
		return step_switch(rule, high, s, next);
	case RULE_END:
		return STEP_END;
	default:
		return STEP_UNKNOWN;
	}
	if (unlikely(!find_caller(rule, *high, s->at, (struct frame_end){cfa, base}, next)))
		return STEP_UNKNOWN;
	next->fp = s->fp;
	if (rule->saved & 1) { /* callee-saved register 0 is the frame pointer */
		s->fp_at = base + 8 * (int64_t)rule->slot[0];
		if (unlikely(!is_in_frame(*high, s->at, s->fp_at)))
			return STEP_UNKNOWN;
		next->fp = *(const uint64_t *)s->fp_at;
	}
	if (unlikely(unwind_is_end(next->pc))) {
		if (s->extra_at || READ(rule->flags) & RULE_GUESSED)
			return STEP_UNKNOWN;
		s->extra_at = step_word_at(next);
		s->extra_value = step_word(next);
		return STEP_END;
	}
	return STEP_OUT;
}

/* The number of the first @count checks that hold; the first @known are known to. */
INLINE uint32_t count_checks(const struct pad_slot *slot, uint32_t known, uint32_t count)
{
	const struct pad_check *first = checks_of(slot), *c = first + known, *end = first + count;

	for (; c + 4 <= end; c += 4) {
		uint64_t differ = (*(const uint64_t *)c[0].at ^ c[0].value) |
				  (*(const uint64_t *)c[1].at ^ c[1].value) |
				  (*(const uint64_t *)c[2].at ^ c[2].value) |
				  (*(const uint64_t *)c[3].at ^ c[3].value);
		if (differ)
			break;
	}
	while (c < end && *(const uint64_t *)c->at == c->value)
		c++;
	return (uint32_t)(c - first);
}

/* Of the innermost frame, which called a pad: where its return address is. */
INLINE uint64_t word_of_place(uint64_t at)
{
	return at - CPU_LINK_BELOW;
}

/* The number of outer frames of the last record that are certainly unchanged, given that the
 * innermost return address is now at @at; the first @known checks hold. */
INLINE uint32_t count_valid(const struct pad_slot *slot, uint64_t at, uint32_t known)
{
	const struct pad_check *check = checks_of(slot);
	const struct pad_frame *frame = frames_of(slot);
	uint32_t n = slot->frame_count, i, checks;

	while (n && check[frame[n - 1].check].at < at)
		n--;
	checks = n ? frame[n - 1].check + 1 : 0;
	i = count_checks(slot, known < checks ? known : checks, checks);
	if (likely(i == checks))
		return n;
	while (n && frame[n - 1].check >= i)
		n--;
	return n;
}

/*
 * Whether the stack whose innermost frame's place is @at is that of the last record. Sets
 * slot->known.
 */
INLINE int is_same_stack(struct pad_slot *slot, uint64_t at, uint64_t fp)
{
	uint32_t n = slot->check_count, known;

	if (!n || checks_of(slot)[n - 1].at != word_of_place(at))
		return 0;
	slot->known = known = count_checks(slot, 0, n);
	return known == n && (!slot->needs_fp || slot->fp == fp);
}

/*
 * Walks the stack from the call that set return_at, whose caller has the place @at and the frame
 * pointer @fp: fills the steps, innermost first. @known: number of checks that hold.
 * *kept_out: number of outer frames that are as in the last record. Returns the number of others,
 * or -1 if a rule is missing or the stack is too deep.
 */
INLINE int64_t walk(const struct pad_control *c, struct pad_slot *slot, uint64_t at, uint64_t fp,
		    uint32_t known, uint32_t *kept_out)
{
	const struct pad_check *check = checks_of(slot);
	const struct pad_frame *frame = frames_of(slot);
	struct pad_step *steps = steps_of(slot);
	uint32_t top = count_valid(slot, word_of_place(at), known), n = 0;
	uint64_t high = slot->stack_high;

	slot->is_switched = 0;
	slot->guessed = 0;
	steps[0].at = at;
	steps[0].pc = slot->return_pc;
	steps[0].fp = fp;
#ifndef RULE_RETURN_SLOT
	steps[0].word_at = word_of_place(at);
#endif
	for (;;) {
		struct pad_step *s = &steps[n];
		int way;
		while (top && check[frame[top - 1].check].at < step_word_at(s))
			top--;
		if (top) {
			const struct pad_frame *f = &frame[top - 1];
			if (check[f->check].at == step_word_at(s) &&
			    check[f->check].value == step_word(s) &&
			    (!f->needs_fp || f->fp == s->fp)) {
				*kept_out = top;
				return n;
			}
		}
		if (unlikely(n + 1 >= slot->max_frames)) {
			note_too_deep(slot);
			return -1;
		}
		way = step(c, &high, s, s + 1);
		if (unlikely(way == STEP_UNKNOWN)) {
			if (!pad_guess_step(c, slot, s))
				return -1;
			slot->guessed = n + 1;
		}
		n++;
		if (unlikely(way == STEP_SWITCH)) {
			slot->is_switched = 1;
			top = 0;
		}
		if (way == STEP_END) {
			*kept_out = 0;
			return n;
		}
	}
}

/* Stores the @fresh steps, for which there is room, after the first @kept frames. */
INLINE void remember(struct pad_slot *slot, uint32_t kept, uint32_t fresh)
{
	struct pad_check *checks = checks_of(slot);
	struct pad_frame *frame = frames_of(slot);
	const struct pad_step *steps = steps_of(slot);
	uint32_t check = kept ? frame[kept - 1].check + 1 : 0;
	uint32_t n = kept, inner = slot->guessed;

	if (unlikely(slot->is_switched))
		n = check = fresh = 0;
	while (fresh-- > inner) {
		const struct pad_step *s = &steps[fresh];
		uint32_t needs_outside = n && frame[n - 1].needs_fp;
		if (s->extra_at)
			checks[check++] = (struct pad_check){ s->extra_at, s->extra_value };
		if (s->fp_at && needs_outside)
			checks[check++] = (struct pad_check){s->fp_at, frame[n - 1].fp};
		checks[check] = (struct pad_check){step_word_at(s), step_word(s)};
		frame[n].fp = s->fp;
		frame[n].check = check++;
		frame[n].needs_fp = s->uses_fp || (!s->fp_at && needs_outside);
		n++;
	}
	slot->frame_count = n;
	slot->check_count = check;
	slot->needs_fp = n && frame[n - 1].needs_fp;
	slot->fp = n ? frame[n - 1].fp : 0;
}

#endif
