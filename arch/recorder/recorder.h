/*
 * The basis of the recorder (recorder_calls.c): how it is compiled, the functions called by pads
 * and between its files, and how a thread finds its slot. CPU-dependent parts are in
 * arch/CPU/recorder_cpu.h:
 *
 *	struct pad_stack      what a pad saved; return_slot: has the caller's return address
 *	cpu_place             the place of the caller's frame (below)
 *	struct pad_saved      callee-saved registers, pushed before a raw record is written
 *	cpu_argument          register of an argument, or of the result
 *	cpu_marker_sp         the stack pointer of a marker's function
 *	cpu_thread_pointer    the key of the slot
 *	cpu_add, cpu_prefetch for the ring
 *	cpu_pause             between two looks at the ring's limit
 *	cpu_wait_for_room     the trap for a full ring
 *	cpu_ticks             the CPU's counter
 *	cpu_unsure_load       a word of memory that may be gone
 *	cpu_label_load        the same, and whether it was there
 *	cpu_is_framed         whether a function evidently has a frame pointer
 *	cpu_fill_regs, cpu_copy_stack  the raw part of a record
 *
 * A frame's place is its stack pointer after the call that it is in, less ARCH_RETURN_SIZE: the
 * address of the return address if the CPU pushes that. If it does not, the function that is called
 * saves it somewhere above its caller's place; a pad, CPU_LINK_BELOW bytes below.
 */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_H
#define PTMEM_ARCH_RECORDER_RECORDER_H

#include "arch/pad.h"

#include <stddef.h>

#ifdef KEEPS_REGISTERS /* with special compiler options for all functions of the file */
#define KEEPS
#else
#define KEEPS __attribute__((no_caller_saved_registers))
#endif
/*
 * Called by pads. No called function has more than three arguments: others are passed in registers
 * that are preserved.
 */
#define API KEEPS __attribute__((noinline, used))
#define INLINE static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" ::: "memory")
#define READ(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#include "arch/recorder/pad_head.h"

/* Without string instructions, and without calling memcpy. */
INLINE void copy_words(uint64_t *to, const void *from, uint64_t count)
{
	for (const uint64_t *p = from; count--; to++, p++) {
		*to = *p;
		barrier();
	}
}

#include RECORDER_CPU /* arch/CPU/recorder_cpu.h; set by make-recorder */

enum { GO_STRAIGHT = 0, GO_CALL = 1, GO_NESTED = 2, GO_TRAP = -1 }; /* of the pad_enter functions */
enum { LEAVE_DONE = 0, LEAVE_RAW = 1, LEAVE_TRAP = 2 }; /* of pad_leave, pad_raw */
enum { NESTED, STALE, PASSED_BY, UNSURE };
enum { LIST_SAME, LIST_OTHER, LIST_TRAP }; /* of pad_walk_list */

API int pad_enter_call(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_plain(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_free(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_throw(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_labelled(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_marker(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_leave(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_leave_plain(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_sample_leaf(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_sample_call(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_enter_sample_free(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_leave_sample(struct pad_stack *stack, const struct pad_head *head, uint64_t fp);
API int pad_raw(struct pad_stack *stack, const struct pad_head *head,
		const struct pad_saved *saved);
API int pad_raw_marker(struct pad_stack *stack, const struct pad_head *head,
		       const struct pad_saved *saved);
API void pad_finish(struct pad_stack *stack, const struct pad_head *head);
API uint64_t pad_read_ticks(const struct pad_control *c);
API int pad_make_room(const struct pad_control *c, const struct pad_slot *slot, uint64_t size);
API void pad_lose_block(const struct pad_control *c, const struct pad_slot *slot, uint64_t bytes);
API void pad_lose_release(const struct pad_control *c, const struct pad_slot *slot, uint64_t block);
API struct pad_slot *pad_search_slot(const struct pad_control *c, uint64_t tp);
/*
 * step() of @s, of the stack of @slot, for a frame without a rule: by its frame pointer, if its
 * function evidently has one. 0: it has none that is known.
 */
API int pad_guess_step(const struct pad_control *c, const struct pad_slot *slot,
		       struct pad_step *s);
API int pad_nesting(const struct pad_control *c, const struct pad_slot *slot,
		    const struct pad_step *call);
/*
 * Walks the list of the interpreter's functions, for a stack of kept | fresh << 32 frames: it is
 * that of the last record, another one, or ptmem must read it.
 */
API int pad_walk_list(const struct pad_control *c, struct pad_slot *slot, uint64_t stack);
/* Writes its frames from slot->list_kept to list_end to @out, and remembers them. */
API void pad_write_list(const struct pad_control *c, struct pad_slot *slot, uint64_t *out);
/*
 * Records what has changed of the labels since the thread's last record. 0: the ring has no room;
 * the call's record is to be lost, too.
 */
API int pad_take_labels(struct pad_control *c, struct pad_slot *slot);
/* An allocation returned @block, which may be the address of a known function. */
API void pad_meet_function(const struct pad_control *c, uint64_t block);
API struct pad_slot *pad_find_call(const struct pad_control *c, uint64_t return_at);

INLINE struct pad_control *head_control(const struct pad_head *head)
{
	return (struct pad_control *)head->control;
}

typedef uint64_t __attribute__((may_alias)) any_word;

INLINE int is_off(const struct pad_control *c)
{
	_Static_assert(offsetof(struct pad_control, owner) == 0 &&
			       offsetof(struct pad_control, off) == 4,
		       "one word says both");
	return unlikely(READ(*(const any_word *)&c->owner) & (~0ull << 32 | PAD_OWNER_DIED));
}

INLINE const struct pad_directory *directory(const struct pad_control *c)
{
	return (const struct pad_directory *)((const char *)c + PAD_DIRECTORY_OFFSET);
}

#define STATE_BEGIN_MAX 16 /* how far from the start of its block a state is at most */

/*
 * The thread frees @block. Some interpreters leave a variable, or frames, with the address of their
 * state when it is freed; its memory may be unmapped.
 */
INLINE void forget_state(struct pad_slot *slot, uint64_t block)
{
	if (likely(!slot->virtual_state))
		return;
	if (slot->virtual_state - block <= STATE_BEGIN_MAX)
		slot->virtual_state = 0;
	for (uint32_t i = 0; i < PAD_OUTER_STATES && slot->virtual_outer[i]; i++)
		if (slot->virtual_outer[i] - block <= STATE_BEGIN_MAX)
			slot->virtual_state = 0;
}

/* The slot of this thread, or NULL. */
INLINE struct pad_slot *find_slot(const struct pad_control *c)
{
	uint64_t tp = cpu_thread_pointer();
	const struct pad_directory *d = &directory(c)[pad_directory_hash(tp)];

	if (likely(READ(d->thread_pointer) == tp))
		return (struct pad_slot *)d->slot;
	return pad_search_slot(c, tp);
}

/* slot.return_at of a pad's call. */
INLINE uint64_t call_return_at(const struct pad_stack *stack)
{
	return cpu_place(stack) - PAD_RETURN_BELOW;
}

INLINE int trap(struct pad_slot *slot, enum pad_reason reason)
{
	slot->reason = reason;
	return GO_TRAP;
}

/* GO_CALL: this thread has *slot_out, and the place @at is on its stack. */
INLINE int enter_slot(const struct pad_control *c, uint64_t at, struct pad_slot **slot_out)
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
	return GO_CALL;
}

#endif
