/* The CPU-dependent part of the recorder; arch/recorder/recorder.h has the list. */
#ifndef PTMEM_ARCH_AARCH64_RECORDER_CPU_H
#define PTMEM_ARCH_AARCH64_RECORDER_CPU_H

#include "arch/aarch64/pad_layout.h"

#define CPU_RED_ZONE 0
#define CPU_LINK_BELOW 8 /* a pad stores the link register below its caller's frame */

/*
 * The registers saved by a pad, and what it pushed first: the address to which the original
 * returns, and the one to which the pad does.
 */
struct pad_stack {
	uint64_t x0, x1, x2, spare, mark, return_slot;
};
_Static_assert(sizeof(struct pad_stack) == PAD_SAVE_SIZE + PAD_PUSHED_SIZE, "as pads push it");

/* Callee-saved registers as stored before the raw recorder: x19 to x29. */
struct pad_saved {
	uint64_t x19[11], spare;
};
_Static_assert(sizeof(struct pad_saved) == PAD_RAW_SIZE, "as pads push it");

INLINE uint64_t cpu_place(const struct pad_stack *stack)
{
	return (uint64_t)(stack + 1);
}

INLINE uint64_t cpu_argument(const struct pad_stack *stack, uint8_t i)
{
	return i == 0 ? stack->x0 : i == 1 ? stack->x1 : stack->x2;
}

INLINE uint64_t cpu_result(const struct pad_stack *stack)
{
	return stack->x0;
}

/* Markers have no pads: these are not called. */
INLINE uint64_t cpu_request(const struct pad_stack *stack)
{
	return stack->x0;
}

INLINE uint64_t cpu_marker_sp(const struct pad_stack *stack)
{
	return (uint64_t)(stack + 1);
}

INLINE uint64_t cpu_thread_pointer(void)
{
	uint64_t tp;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* @word without its pointer authentication code: xpaclri, which older CPUs execute as nop. */
INLINE uint64_t cpu_return_address(uint64_t word)
{
	register uint64_t link __asm__("x30") = word;

	__asm__("hint #7" : "+r"(link));
	return link;
}

/* Return addresses are in frames: there is no word that calls always write. */
INLINE void cpu_forget_return(void)
{
}

/*
 * Adds *@value to *@to, and sets *@value to the old contents, atomically for signal handlers; for
 * other threads with full barriers, so that the order of numbers is that of the calls.
 */
INLINE void cpu_add(uint64_t *to, uint64_t *value, uint32_t is_shared)
{
	if (is_shared)
		*value = __sync_fetch_and_add(to, *value);
	else
		*value = __atomic_fetch_add(to, *value, __ATOMIC_RELAXED);
}

INLINE void cpu_prefetch(const void *record)
{
	__asm__ volatile("prfm pstl1keep, [%0, #512]" ::"r"(record));
}

/* Between two looks at memory that another CPU writes. */
INLINE void cpu_pause(void)
{
	__asm__ volatile("yield");
}

/* Traps for room up to @end in the ring of @slot; *@answer gets an enum pad_full_answer. */
INLINE void cpu_wait_for_room(uint64_t slot, uint64_t end, uint64_t *answer)
{
	register uint64_t x0 __asm__("x0") = slot, x1 __asm__("x1") = end,
			  x2 __asm__("x2") = *answer;

	__asm__ volatile(".globl pad_full_trap\npad_full_trap: brk #0"
			 : "+r"(x2) : "r"(x0), "r"(x1) : "memory");
	*answer = x2;
}

/*
 * The virtual counter. ptmem finds the instruction by its name, and sends the thread on behind it
 * if it faults.
 */
INLINE uint64_t cpu_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile(".globl pad_ticks\npad_ticks: mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

/*
 * The word at @at; 0 if there is no memory. ptmem finds the instruction by its name, and sends the
 * thread on behind it. In one function only.
 */
INLINE uint64_t cpu_unsure_load(uint64_t at)
{
	uint64_t word = 0;

	__asm__ volatile(".globl pad_unsure_load\npad_unsure_load: ldr %0, [%1]"
			 : "+&r"(word) : "r"(at) : "memory");
	return word;
}

/*
 * The word at @at to *@out; 0 if there is no memory. ptmem sends the thread on behind both
 * instructions. In one function only.
 */
INLINE int cpu_label_load(uint64_t at, uint64_t *out)
{
	uint64_t word = 0, is_there = 0;

	__asm__ volatile(".globl pad_label_load\npad_label_load: ldr %0, [%2]\n\tmov %1, #1"
			 : "+&r"(word), "+&r"(is_there) : "r"(at) : "memory");
	*out = word;
	return (int)is_there;
}

/* A frame record says nothing about where its function's frame ends. */
INLINE int cpu_is_framed(uint64_t start, uint64_t pc)
{
	(void)start;
	(void)pc;
	return 0;
}

/* The PAD_RAW_REGS registers in DWARF order; 0 for those that calls change. */
INLINE void cpu_fill_regs(uint64_t *out, const struct pad_saved *saved, uint64_t sp, uint64_t pc)
{
	for (int i = 0; i < PAD_RAW_REGS; i++)
		WRITE(out[i], 0);
	for (int i = 0; i < 11; i++)
		WRITE(out[19 + i], saved->x19[i]);
	out[31] = sp;
	out[32] = pc;
}

INLINE uint64_t cpu_saved_fp(const struct pad_saved *saved)
{
	return saved->x19[10];
}

INLINE void cpu_copy_stack(uint64_t *to, const void *from, uint64_t words)
{
	copy_words(to, from, words);
}

#endif
