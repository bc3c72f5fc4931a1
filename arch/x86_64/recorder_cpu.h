/* The CPU-dependent part of the recorder; arch/recorder/recorder.h has the list. */
#ifndef PTMEM_ARCH_X86_64_RECORDER_CPU_H
#define PTMEM_ARCH_X86_64_RECORDER_CPU_H

#include "arch/x86_64/pad_layout.h"

#define CPU_RED_ZONE PAD_RED_ZONE
#define CPU_LINK_BELOW 0 /* a return address is at its frame's place */

/* The registers saved by a pad; return_slot is the word at the stack pointer. */
struct pad_stack {
	uint64_t rdx, rsi, rdi, rax, return_slot;
};

/* Callee-saved registers as pushed before the raw recorder. */
struct pad_saved {
	uint64_t rbx, rbp, r12, r13, r14, r15;
};

INLINE uint64_t cpu_place(const struct pad_stack *stack)
{
	return (uint64_t)&stack->return_slot;
}

INLINE uint64_t cpu_argument(const struct pad_stack *stack, uint8_t i)
{
	return i == 0 ? stack->rdi : i == 1 ? stack->rsi : stack->rdx;
}

INLINE uint64_t cpu_result(const struct pad_stack *stack)
{
	return stack->rax;
}

/* The address of a client request. A marker's pad saves the flags as rax, and rax above that. */
INLINE uint64_t cpu_request(const struct pad_stack *stack)
{
	return stack->return_slot;
}

/* Above the words saved by a marker's pad and the red zone. */
INLINE uint64_t cpu_marker_sp(const struct pad_stack *stack)
{
	return (uint64_t)(&stack->return_slot + 1) + CPU_RED_ZONE;
}

/* As defined by the TLS ABI. */
INLINE uint64_t cpu_thread_pointer(void)
{
	uint64_t tp;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/*
 * After calling a function in which a thread can spend a long time (pad_make_room): clears the
 * return address below the stack. A later frame may not overwrite that word, and a ptmem without an
 * unwinder (control/cleanup.c) would take the thread to be still inside.
 */
INLINE void cpu_forget_return(void)
{
	__asm__ volatile("movq $0, -8(%%rsp)" ::: "memory");
}

/*
 * Adds *@value to *@to, and sets *@value to the old contents. A single instruction, so atomic for
 * signal handlers; for other threads only if the bus is locked (@is_shared).
 */
INLINE void cpu_add(uint64_t *to, uint64_t *value, uint32_t is_shared)
{
	if (is_shared)
		__asm__ volatile("lock xadd %0, %1" : "+r"(*value), "+m"(*to));
	else
		__asm__ volatile("xadd %0, %1" : "+r"(*value), "+m"(*to));
}

INLINE void cpu_prefetch(const void *record)
{
	__asm__ volatile("prefetchw 512(%0)" ::"r"(record));
}

/* Between two looks at memory that another CPU writes. */
INLINE void cpu_pause(void)
{
	__asm__ volatile("pause");
}

/* Traps for room up to @end in the ring of @slot; *@answer gets an enum pad_full_answer. */
INLINE void cpu_wait_for_room(uint64_t slot, uint64_t end, uint64_t *answer)
{
	__asm__ volatile(".globl pad_full_trap\npad_full_trap: int3"
			 : "+a"(*answer) : "D"(slot), "S"(end) : "memory");
}

/*
 * The time stamp counter. A program may have disabled it (PR_SET_TSC): ptmem finds the instruction
 * by its name, and sends the thread on behind it.
 */
INLINE uint64_t cpu_ticks(void)
{
	uint32_t low, high;

	__asm__ volatile(".globl pad_ticks\npad_ticks: rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/*
 * The word at @at; 0 if there is no memory. ptmem finds the instruction by its name, and sends the
 * thread on behind it. In one function only.
 */
INLINE uint64_t cpu_unsure_load(uint64_t at)
{
	uint64_t word = 0;

	__asm__ volatile(".globl pad_unsure_load\npad_unsure_load: mov (%%rdi), %%rax"
			 : "+a"(word) : "D"(at) : "memory");
	return word;
}

/*
 * The word at @at to *@out; 0 if there is no memory. ptmem sends the thread on behind both
 * instructions. In one function only.
 */
INLINE int cpu_label_load(uint64_t at, uint64_t *out)
{
	uint64_t word = 0;
	uint8_t is_there = 0;

	__asm__ volatile(".globl pad_label_load\n"
			 "pad_label_load: mov (%%rdi), %%rax\n\tmovb $1, %%dl"
			 : "+a"(word), "+d"(is_there) : "D"(at) : "memory");
	*out = word;
	return is_there;
}

#define CPU_ENTRY_ALIGN 16
#define CPU_ENTRY_FAR 8192 /* bytes */

/*
 * Whether the function that contains the call before @pc evidently begins with setting up a frame
 * pointer. Reads code from @start on. As arch_find_entry; the linker fills space with int3.
 */
INLINE int cpu_is_framed(uint64_t start, uint64_t pc)
{
	const uint32_t endbr64 = 0xfa1e0ff3, setup = 0xe5894855, other_setup = 0xec8b4855;
	const uint64_t first = start + CPU_ENTRY_ALIGN;
	typedef uint32_t __attribute__((may_alias, aligned(1))) any_half;
	typedef uint16_t __attribute__((may_alias, aligned(1))) any_quarter;

	for (uint64_t at = (pc - 1 - 8) & ~(CPU_ENTRY_ALIGN - 1ull);
	     at >= first && pc - at <= CPU_ENTRY_FAR; at -= CPU_ENTRY_ALIGN) {
		const any_half *code = (const any_half *)at;
		uint32_t word = code[0] == endbr64 ? code[1] : code[0];

		if (word == setup || word == other_setup)
			return 1;
		if (*(const any_quarter *)(at - 2) == 0xcccc && (uint8_t)word != 0xcc)
			return 0;
	}
	return 0;
}

/* The PAD_RAW_REGS registers in DWARF order; 0 for those that calls change. */
INLINE void cpu_fill_regs(uint64_t *out, const struct pad_saved *saved, uint64_t sp, uint64_t pc)
{
	for (int i = 0; i < PAD_RAW_REGS; i++)
		WRITE(out[i], 0);
	out[3] = saved->rbx;
	out[6] = saved->rbp;
	out[7] = sp;
	out[12] = saved->r12;
	out[13] = saved->r13;
	out[14] = saved->r14;
	out[15] = saved->r15;
	out[16] = pc;
}

INLINE uint64_t cpu_saved_fp(const struct pad_saved *saved)
{
	return saved->rbp;
}

/* In a call: the ABI guarantees a clear direction flag. */
INLINE void cpu_copy_stack(uint64_t *to, const void *from, uint64_t words)
{
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
}

#endif
