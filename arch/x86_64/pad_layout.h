/*
 * Offsets shared by the pads' assembly code and C. The pad's own words precede its code; struct
 * pad_head in recorder/pad_head.h is the same in C.
 */
#define PAD_HEAD_ENTER 8
#define PAD_HEAD_LEAVE 16
#define PAD_HEAD_RAW 24
#define PAD_HEAD_FINISH 32
#define PAD_HEAD_MARK 48
#define PAD_HEAD_SAME_LABELS 72
#define PAD_HEAD_SIZE 80
#define PAD_HEAD_FUNCTION 57 /* probe.function */
#define PAD_MOVED_ROOM 96
#define PAD_JUMP_SIZE 5
#define PAD_RED_ZONE 128

#define RECORDER_MAGIC 0x64615070 /* "pPad" */

/*
 * Fields of the shared memory used by short ways; pad.c compares them with
 * arch/pad.h.
 */
#define PAD_CONTROL_FLAGS 8
#define PAD_CONTROL_SHARED 12
#define PAD_CONTROL_RULES 16
#define PAD_CONTROL_RULE_BITS 24
#define PAD_CONTROL_NUMBER 256
#define PAD_CONTROL_LABEL_EPOCH 1792
#define PAD_RULE_PC 0
#define PAD_RULE_OFFSET 8
#define PAD_RULE_KIND 12
#define PAD_RING_HEAD 0
#define PAD_RING_SOFT_LIMIT 8
#define PAD_RING_AT 16
#define PAD_RING_MASK 24
#define PAD_LAYOUT_DIRECTORY 4096
#define PAD_LAYOUT_DIRECTORY_BITS 15
#define PAD_LAYOUT_FILTER_BITS 19
#define PAD_LAYOUT_CELLS 2625536
#define PAD_LAYOUT_CELL_SHIFT 4
#define PAD_LAYOUT_ALLOC 1 /* enum pad_kind */
#define PAD_LAYOUT_DELETE 4
#define PAD_LAYOUT_RULE_SP 1 /* enum unwind_rule_kind */
#define PAD_LAYOUT_COUNT_ONLY 1 /* enum pad_flag */
#define PAD_LAYOUT_LONG_WAY 6 /* with PAD_VERIFY or PAD_STACK_POINTER there is no short way */
#define PAD_LAYOUT_OTHER_WAY 1030 /* nor, for allocations, with PAD_VIRTUAL */
#define PAD_LAYOUT_HAS_LABELS 4096
#define PAD_LAYOUT_MARK_LOW 8
#define PAD_LAYOUT_DIED 0x40000000
#define PAD_SLOT_LOW 8
#define PAD_SLOT_HIGH 16
#define PAD_SLOT_RETURN_AT 24
#define PAD_SLOT_RETURN_TO 32
#define PAD_SLOT_RING 40
#define PAD_SLOT_ARG 48
#define PAD_SLOT_CHECK 72
#define PAD_SLOT_FP 80
#define PAD_SLOT_KIND 88
#define PAD_SLOT_CHECK_COUNT 92
#define PAD_SLOT_NEEDS_FP 96
#define PAD_SLOT_LEFT 120
#define PAD_SLOT_SAMPLED 200 /* is_sampled and is_old_sampled */
#define PAD_SLOT_COUNT 384
#define PAD_SLOT_LABEL_EPOCH 640
#define PAD_SLOT_LABEL_CHECKS 648
#define PAD_SLOT_LABEL_CHECK 656
