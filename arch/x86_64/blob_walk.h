/*
 * The recorder's incremental walk. The slot holds the frames of the thread's last record,
 * outermost first, as checks: a word of the stack and the value it had. A frame is
 * still what it was when its return slot and everything outside of it are: where a
 * frame's CFA is, follows from the code address in the return slot before it, and
 * from the frame pointer where the rule says so (needs_fp; the word in which the
 * frame pointer was saved is then a check too). So
 *	1. compare the checks from the outermost inwards; behind a difference nothing is known
 *	2. walk by rules from the innermost outwards, until a return slot is one of step 1
 */
#ifndef PTMEM_ARCH_X86_64_BLOB_WALK_H
#define PTMEM_ARCH_X86_64_BLOB_WALK_H

#include "arch/x86_64/blob_base.h"

enum { STEP_OUT, STEP_END, STEP_UNKNOWN };

INLINE int is_in_stack(const struct pad_slot *slot, uint64_t above, uint64_t at)
{
	return at > above && at < slot->stack_high && (at & 7) == 0;
}

/*
 * From the frame whose return slot is s->at to its caller: *next gets the caller's return
 * slot, the address in there and its frame pointer; s what the way depends on.
 */
INLINE int step(const struct pad_control *c, const struct pad_slot *slot, struct pad_step *s,
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
		cfa = base = s->at + 8 + (int64_t)rule->cfa_offset;
		break;
	case RULE_FP:
		cfa = base = s->fp + (int64_t)rule->cfa_offset;
		s->uses_fp = 1;
		break;
	case RULE_FP_DEREF:
		base = s->fp;
		s->uses_fp = 1;
		s->extra_at = base + (int64_t)rule->cfa_offset;
		if (!is_in_stack(slot, s->at, s->extra_at))
			return STEP_UNKNOWN;
		s->extra_value = cfa = *(const uint64_t *)s->extra_at;
		break;
	case RULE_END:
		return STEP_END;
	default:
		return STEP_UNKNOWN;
	}
	next->at = cfa - 8;
	if (unlikely(!is_in_stack(slot, s->at, next->at)))
		return STEP_UNKNOWN;
	next->pc = *(const uint64_t *)next->at;
	next->fp = s->fp;
	if (rule->saved & 1) { /* callee-saved register 0 is the frame pointer */
		s->fp_at = base + 8 * (int64_t)rule->slot[0];
		if (unlikely(!is_in_stack(slot, s->at, s->fp_at)))
			return STEP_UNKNOWN;
		next->fp = *(const uint64_t *)s->fp_at;
	}
	if (unlikely(unwind_is_end(next->pc))) {
		if (s->extra_at)
			return STEP_UNKNOWN;
		s->extra_at = next->at;
		s->extra_value = next->pc;
		return STEP_END;
	}
	return STEP_OUT;
}

/* How many of the first @count checks hold, of which the first @known do. */
INLINE uint32_t count_checks(const struct pad_slot *slot, uint32_t known, uint32_t count)
{
	const struct pad_check *c = slot->check + known, *end = slot->check + count;

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
	return (uint32_t)(c - slot->check);
}

/* How many outer frames of the last record are certainly as they were, given that the
 * innermost return slot is now @at; the first @known checks hold. */
INLINE uint32_t count_valid(const struct pad_slot *slot, uint64_t at, uint32_t known)
{
	uint32_t n = slot->frame_count, i, checks;

	while (n && slot->check[slot->frame[n - 1].check].at < at)
		n--;
	checks = n ? slot->frame[n - 1].check + 1 : 0;
	i = count_checks(slot, known < checks ? known : checks, checks);
	if (likely(i == checks))
		return n;
	while (n && slot->frame[n - 1].check >= i)
		n--;
	return n;
}

/*
 * Whether the stack whose innermost return slot is
 * @at is that of the last record. Sets slot->known.
 */
INLINE int is_same_stack(struct pad_slot *slot, uint64_t at, uint64_t fp)
{
	uint32_t n = slot->check_count, known;

	if (!n || slot->check[n - 1].at != at)
		return 0;
	slot->known = known = count_checks(slot, 0, n);
	return known == n && (!slot->needs_fp || slot->fp == fp);
}

/*
 * Walks the stack from the call that set the guard, whose caller has frame pointer @fp: fills
 * slot->step, innermost first. @known: so many checks hold. *kept_out: outer frames as in the last
 * record; returns the number of others, or -1 when a rule is missing.
 */
INLINE int64_t walk(const struct pad_control *c, struct pad_slot *slot, uint64_t fp, uint32_t known,
		    uint32_t *kept_out)
{
	uint64_t at = slot->guard;
	uint32_t top = count_valid(slot, at, known), n = 0;

	slot->step[0].at = at;
	slot->step[0].pc = slot->return_pc;
	slot->step[0].fp = fp;
	for (;;) {
		struct pad_step *s = &slot->step[n];
		int way;
		while (top && slot->check[slot->frame[top - 1].check].at < s->at)
			top--;
		if (top) {
			const struct pad_frame *f = &slot->frame[top - 1];
			if (slot->check[f->check].at == s->at &&
			    slot->check[f->check].value == s->pc &&
			    (!f->needs_fp || f->fp == s->fp)) {
				*kept_out = top;
				return n;
			}
		}
		if (unlikely(n + 1 >= PAD_MAX_FRAMES))
			return -1;
		way = step(c, slot, s, s + 1);
		if (unlikely(way == STEP_UNKNOWN))
			return -1;
		n++;
		if (way == STEP_END) {
			*kept_out = 0;
			return n;
		}
	}
}

/* Takes the @fresh steps into the frames behind the first @kept. 0 when there is no room. */
INLINE int remember(struct pad_slot *slot, uint32_t kept, uint32_t fresh)
{
	uint32_t check = kept ? slot->frame[kept - 1].check + 1 : 0;
	uint32_t n = kept;

	if (unlikely(kept + fresh > PAD_MAX_FRAMES || check + 3 * fresh > PAD_MAX_CHECKS))
		return 0;
	while (fresh--) {
		const struct pad_step *s = &slot->step[fresh];
		uint32_t needs_outside = n && slot->frame[n - 1].needs_fp;
		if (s->extra_at)
			slot->check[check++] = (struct pad_check){ s->extra_at, s->extra_value };
		if (s->fp_at && needs_outside)
			slot->check[check++] = (struct pad_check){s->fp_at, slot->frame[n - 1].fp};
		slot->check[check] = (struct pad_check){ s->at, s->pc };
		slot->frame[n].fp = s->fp;
		slot->frame[n].check = check++;
		slot->frame[n].needs_fp = s->uses_fp || (!s->fp_at && needs_outside);
		n++;
	}
	slot->frame_count = n;
	slot->check_count = check;
	slot->needs_fp = n && slot->frame[n - 1].needs_fp;
	slot->fp = n ? slot->frame[n - 1].fp : 0;
	return 1;
}

#endif
