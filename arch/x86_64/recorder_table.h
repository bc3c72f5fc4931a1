/*
 * The table at the start of the recorder's code (recorder_template.S).
 */
#ifndef PTMEM_ARCH_X86_64_RECORDER_TABLE_H
#define PTMEM_ARCH_X86_64_RECORDER_TABLE_H

#include "arch/recorder/pad_head.h"
#include "arch/x86_64/pad_layout.h"

#define CONTROL_IS(member, offset) (offsetof(struct pad_control, member) == PAD_CONTROL_##offset)
#define RULE_IS(member, offset) (offsetof(struct unwind_rule, member) == PAD_RULE_##offset)
#define RING_IS(member, offset) (offsetof(struct pad_ring, member) == PAD_RING_##offset)
#define SLOT_IS(member, offset) (offsetof(struct pad_slot, member) == PAD_SLOT_##offset)

_Static_assert(sizeof(struct pad_head) == PAD_HEAD_SIZE &&
		       offsetof(struct pad_head, mark) == PAD_HEAD_MARK &&
		       offsetof(struct pad_head, probe.function) == PAD_HEAD_FUNCTION,
	       "as in pad_layout.h");
_Static_assert(CONTROL_IS(flags, FLAGS) && CONTROL_IS(shared, SHARED) &&
		       CONTROL_IS(next_number, NUMBER) && CONTROL_IS(rules, RULES) &&
		       CONTROL_IS(rule_bits, RULE_BITS) && RULE_IS(pc, PC) &&
		       RULE_IS(cfa_offset, OFFSET) && RULE_IS(kind, KIND) &&
		       sizeof(struct unwind_rule) == 32 && RULE_SP == PAD_LAYOUT_RULE_SP &&
		       RING_IS(head, HEAD) &&
		       RING_IS(soft_limit, SOFT_LIMIT) && RING_IS(at, AT) && RING_IS(mask, MASK),
	       "as in pad_layout.h");
_Static_assert(SLOT_IS(stack_low, LOW) && SLOT_IS(stack_high, HIGH) &&
		       SLOT_IS(return_at, RETURN_AT) && SLOT_IS(return_to, RETURN_TO) &&
		       SLOT_IS(ring, RING) && SLOT_IS(arg, ARG) && SLOT_IS(kind, KIND) &&
		       SLOT_IS(check_count, CHECK_COUNT) && SLOT_IS(needs_fp, NEEDS_FP) &&
		       SLOT_IS(fp, FP) && SLOT_IS(check, CHECK) && SLOT_IS(left, LEFT) &&
		       SLOT_IS(is_sampled, SAMPLED) &&
		       offsetof(struct pad_slot, is_old_sampled) == PAD_SLOT_SAMPLED + 4 &&
		       SLOT_IS(count, COUNT) && sizeof(struct pad_count) == 16,
	       "as in pad_layout.h");
_Static_assert(PAD_ALLOC == PAD_LAYOUT_ALLOC && PAD_COUNT_ONLY == PAD_LAYOUT_COUNT_ONLY &&
		       (PAD_VERIFY | PAD_STACK_POINTER) == PAD_LAYOUT_LONG_WAY &&
		       PAD_OWNER_DIED == PAD_LAYOUT_DIED && PAD_MARK_LOW == PAD_LAYOUT_MARK_LOW &&
		       PAD_DIRECTORY_OFFSET == PAD_LAYOUT_DIRECTORY &&
		       PAD_DIRECTORY_BITS == PAD_LAYOUT_DIRECTORY_BITS &&
		       PAD_FILTER_BITS == PAD_LAYOUT_FILTER_BITS &&
		       PAD_FILTER_OFFSET + offsetof(struct pad_filter, cell) == PAD_LAYOUT_CELLS &&
		       PAD_CELL_SHIFT == PAD_LAYOUT_CELL_SHIFT && PAD_DELETE == PAD_LAYOUT_DELETE,
	       "as in pad_layout.h");
#undef CONTROL_IS
#undef RULE_IS
#undef RING_IS
#undef SLOT_IS

/* Offsets from there. */
struct recorder_table {
	uint32_t magic;
	uint32_t enter_call, enter_plain, enter_free, enter_throw, enter_marker;
	uint32_t leave, leave_plain, raw, raw_marker, finish, full_trap, ticks;
	uint32_t sample_leaf, sample_call, sample_free, leave_sample;
	struct {
		uint32_t start, entry, entry_trap, after, leave_trap, moved, end, back, ret, tail,
			down;
		/* entry code that may precede start, with the same head: short ways */
		uint32_t sample_alloc, sample_free, exact_free;
	} call, tracked, plain, jump, marker; /* the templates; 0 if there is none */
};

#endif
