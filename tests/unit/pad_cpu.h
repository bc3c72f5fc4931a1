/* What tests of pads need of the CPU: functions that behave like an allocator's, and registers at a trap. */
#ifndef PTMEM_TESTS_UNIT_PAD_CPU_H
#define PTMEM_TESTS_UNIT_PAD_CPU_H

#include <stdint.h>
#include <ucontext.h>

#include "arch/arch.h"
#include "unwind/unwind.h"

/*
 * Else the compiler would take the address of a local symbol from the GOT. Code is put into .text,
 * and the section from before restored: without optimization, the compiler continues in that.
 */
#define FAKE_SYMBOLS                                                                        \
	".globl fake_malloc, fake_free, fake_realloc, fake_posix, fake_new, fake_delete\n" \
	".globl fake_throw, call_keeping\n"

#if defined(__x86_64__)

#define TRAP_PC(uc) ((taddr_t)(uc)->uc_mcontext.gregs[REG_RIP] - 1) /* of the trap that was hit */
#define AFTER_TRAP(uc) ((void)(uc))
#define SET_PC(uc, pc) ((uc)->uc_mcontext.gregs[REG_RIP] = (greg_t)(pc))
#define SET_ANSWER(uc, answer) ((uc)->uc_mcontext.gregs[REG_RAX] = (answer))

/* A stub's return path to the caller: lea 8(%rsp), %rsp; ret. */
static const uint8_t drop_word[] = { 0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3 };

static inline uint64_t thread_pointer(void)
{
	uint64_t tp;
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* The call chain at a trap: the pc is the return address that the stack pointer is at. */
static inline struct stack_view view_at_entry(const ucontext_t *uc)
{
	static const int order[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
				       REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	struct stack_view view = { 0 };
	taddr_t sp = (taddr_t)uc->uc_mcontext.gregs[REG_RSP];
	for (int i = 0; i < 16; i++)
		view.regs.reg[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	view.regs.reg[7] = sp + 8;
	view.regs.reg[16] = *(const uint64_t *)(uintptr_t)sp;
	view.start = sp + 8;
	return view;
}

/* Changes callee-saved registers. */
#define CHANGE_SAVED(value)                                                                      \
	__asm__ volatile("mov %0, %%rbx\n mov %0, %%r12\n mov %0, %%r13" ::"r"((uint64_t)(value)) \
			 : "rbx", "r12", "r13", "r14", "r15")

#define FAKE_ALLOCATOR                                                                                              \
	".pushsection .text\n"                                                                                      \
	"fake_malloc: .cfi_startproc\n mov $16, %eax\n test %rdi, %rdi\n js 1f\n"                                   \
	" lock xadd %rax, fake_next(%rip)\n ret\n1: xor %eax, %eax\n ret\n.cfi_endproc\n"                           \
	"fake_free: .cfi_startproc\n test %rdi, %rdi\n je 1f\n lock incq fake_frees(%rip)\n1: ret\n.cfi_endproc\n"  \
	"fake_realloc: .cfi_startproc\n mov %rdi, %rax\n add $16, %rax\n ret\n.cfi_endproc\n"                       \
	"fake_posix: .cfi_startproc\n mov $22, %eax\n cmp $3, %rsi\n je 1f\n"                                       \
	" movq $0x5000, (%rdi)\n xor %eax, %eax\n1: ret\n.cfi_endproc\n"                                            \
	"fake_new: .cfi_startproc\n push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n mov %rdi, %rbx\n"        \
	" mov %rbx, %rdi\n call *nested_alloc(%rip)\n pop %rbx\n.cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n"        \
	"fake_delete: .cfi_startproc\n jmp *nested_free(%rip)\n.cfi_endproc\n"                                      \
	"fake_throw: .cfi_startproc\n mov $7, %eax\n ret\n.cfi_endproc\n"                                           \
	/* allocates arg 1 blocks, the first one below a call of itself with another arg 0 if there is an arg 2 */ \
	"fake_handle: .cfi_startproc\n push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n mov %rsi, %rbx\n" \
	" test %rdx, %rdx\n je 1f\n inc %rdi\n mov $1, %esi\n xor %edx, %edx\n mov pad_handle(%rip), %rax\n call *%rax\n dec %rbx\n" \
	"1: mov $100, %edi\n call *nested_alloc(%rip)\n dec %rbx\n jne 1b\n pop %rbx\n.cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n" \
	" .skip 64, 0x90\n .popsection\n" /* what follows could look like a branch to the last one */

/* Calls @fn(arg) with every register set; returns a mask of those that it changed, that of the result aside. */
#define CALL_KEEPING                                                                                            \
	".pushsection .text\n"                                                                                  \
	"call_keeping: .cfi_startproc\n"                                                                        \
	" push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdx\n"                  \
	" .cfi_adjust_cfa_offset 56\n .cfi_offset 6,-16\n .cfi_offset 3,-24\n .cfi_offset 12,-32\n"             \
	" .cfi_offset 13,-40\n .cfi_offset 14,-48\n .cfi_offset 15,-56\n"                                       \
	" mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdi, %rsi\n"                                                   \
	" lea 2(%rdi), %rdx\n lea 3(%rdi), %rcx\n lea 4(%rdi), %r8\n lea 5(%rdi), %r9\n lea 6(%rdi), %r10\n"    \
	" lea 7(%rdi), %r11\n lea 8(%rdi), %rbx\n lea 9(%rdi), %r12\n lea 10(%rdi), %r13\n"                     \
	" lea 11(%rdi), %r14\n lea 12(%rdi), %r15\n lea 13(%rdi), %rbp\n"                                       \
	" call *%rax\n"                                                                                         \
	" sub %rdi, %rsi\n sub %rdi, %rdx\n sub %rdi, %rcx\n sub %rdi, %r8\n sub %rdi, %r9\n sub %rdi, %r10\n"  \
	" sub %rdi, %r11\n sub %rdi, %rbx\n sub %rdi, %r12\n sub %rdi, %r13\n sub %rdi, %r14\n"                 \
	" sub %rdi, %r15\n sub %rdi, %rbp\n"                                                                    \
	" sub $2, %rdx\n sub $3, %rcx\n sub $4, %r8\n sub $5, %r9\n sub $6, %r10\n sub $7, %r11\n"              \
	" sub $8, %rbx\n sub $9, %r12\n sub $10, %r13\n sub $11, %r14\n sub $12, %r15\n sub $13, %rbp\n"        \
	" or %rdx, %rsi\n or %rcx, %rsi\n or %r8, %rsi\n or %r9, %rsi\n or %r10, %rsi\n or %r11, %rsi\n"        \
	" or %rbx, %rsi\n or %r12, %rsi\n or %r13, %rsi\n or %r14, %rsi\n or %r15, %rsi\n or %rbp, %rsi\n"      \
	" pop %rdx\n mov %rax, (%rdx)\n mov %rsi, %rax\n"                                                       \
	" pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n .cfi_endproc\n"  \
	".popsection\n"

#elif defined(__aarch64__)

#define TRAP_PC(uc) ((taddr_t)(uc)->uc_mcontext.pc)
#define AFTER_TRAP(uc) ((void)((uc)->uc_mcontext.pc += 4))
#define SET_PC(uc, to) ((uc)->uc_mcontext.pc = (to))
#define SET_ANSWER(uc, answer) ((uc)->uc_mcontext.regs[2] = (answer))

/* A stub's return path to the caller. */
static const uint8_t drop_word[] = {0xfe, 0x07, 0x40, 0xf9, /* ldr x30, [sp, #8] */
				    0xff, 0x43, 0x00, 0x91, /* add sp, sp, #16 */
				    0xc0, 0x03, 0x5f, 0xd6};

static inline uint64_t thread_pointer(void)
{
	uint64_t tp;
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* The call chain at a trap: the pc is the return address in the link register. */
static inline struct stack_view view_at_entry(const ucontext_t *uc)
{
	struct stack_view view = { 0 };
	for (int i = 0; i < 31; i++)
		view.regs.reg[i] = uc->uc_mcontext.regs[i];
	view.regs.reg[31] = uc->uc_mcontext.sp;
	view.regs.reg[32] = uc->uc_mcontext.regs[30];
	view.start = uc->uc_mcontext.sp;
	return view;
}

#define CHANGE_SAVED(value)                                                                 \
	__asm__ volatile("mov x19, %0\n mov x20, %0\n mov x28, %0" ::"r"((uint64_t)(value)) \
			 : "x19", "x20", "x21", "x27", "x28")

#define FAKE_ALLOCATOR                                                                                         \
	".pushsection .text\n.balign 4\n"                                                                       \
	"fake_malloc: .cfi_startproc\n mov x17, x0\n mov x0, #0\n tbnz x17, #63, 1f\n"                         \
	" adrp x16, fake_next\n add x16, x16, :lo12:fake_next\n sub sp, sp, #16\n.cfi_def_cfa_offset 16\n"     \
	" stp x1, x2, [sp]\n2: ldaxr x0, [x16]\n add x1, x0, #16\n stlxr w2, x1, [x16]\n cbnz w2, 2b\n"        \
	" ldp x1, x2, [sp], #16\n.cfi_def_cfa_offset 0\n1: ret\n.cfi_endproc\n"                                \
	"fake_free: .cfi_startproc\n mov x17, x0\n cbz x17, 1f\n"                                              \
	" adrp x16, fake_frees\n add x16, x16, :lo12:fake_frees\n stp x1, x2, [sp, #-16]!\n"                   \
	".cfi_def_cfa_offset 16\n2: ldaxr x1, [x16]\n add x1, x1, #1\n stlxr w2, x1, [x16]\n cbnz w2, 2b\n"    \
	" ldp x1, x2, [sp], #16\n.cfi_def_cfa_offset 0\n1: ret\n.cfi_endproc\n"                                \
	"fake_realloc: .cfi_startproc\n add x0, x0, #16\n ret\n.cfi_endproc\n"                                 \
	"fake_posix: .cfi_startproc\n mov x16, x0\n mov w0, #22\n cmp x1, #3\n b.eq 1f\n"                      \
	" mov x17, #0x5000\n str x17, [x16]\n mov w0, #0\n1: ret\n.cfi_endproc\n"                              \
	"fake_new: .cfi_startproc\n stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n"                       \
	".cfi_offset 29,-16\n.cfi_offset 30,-8\n adrp x16, nested_alloc\n ldr x16, [x16, :lo12:nested_alloc]\n" \
	" blr x16\n ldp x29, x30, [sp], #16\n.cfi_def_cfa_offset 0\n.cfi_restore 29\n.cfi_restore 30\n ret\n"  \
	".cfi_endproc\n"                                                                                       \
	"fake_delete: .cfi_startproc\n adrp x16, nested_free\n ldr x16, [x16, :lo12:nested_free]\n br x16\n"   \
	".cfi_endproc\n"                                                                                       \
	"fake_throw: .cfi_startproc\n mov w0, #7\n ret\n.cfi_endproc\n"                                        \
	" .skip 64\n.popsection\n"

/* x16 and x17 may be changed by any call; x18 is the platform's. */
#define SAVED_PAIRS(do)                                                                     \
	do(19, 20, 16) do(21, 22, 32) do(23, 24, 48) do(25, 26, 64) do(27, 28, 80)
#define SAVE_PAIR(a, b, at) " stp x" #a ", x" #b ", [sp, #" #at "]\n"
#define LOAD_PAIR(a, b, at) " ldp x" #a ", x" #b ", [sp, #" #at "]\n"
#define KEPT(do)                                                                               \
	do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) \
	do(15) do(19) do(20) do(21) do(22) do(23) do(24) do(25) do(26) do(27) do(28) do(29)
#define SET_KEPT(n) " add x" #n ", x0, #" #n "\n"
#define TEST_KEPT(n) " sub x" #n ", x" #n ", x17\n sub x" #n ", x" #n ", #" #n "\n orr x16, x16, x" #n "\n"
#define CALL_KEEPING                                                                           \
	".pushsection .text\n.balign 4\n"                                                      \
	"call_keeping: .cfi_startproc\n stp x29, x30, [sp, #-112]!\n .cfi_def_cfa_offset 112\n" \
	" .cfi_offset 29,-112\n .cfi_offset 30,-104\n" SAVED_PAIRS(SAVE_PAIR)                  \
	" stp x1, x2, [sp, #96]\n mov x16, x0\n mov x0, x1\n" KEPT(SET_KEPT)                   \
	" blr x16\n ldr x17, [sp, #96]\n mov x16, #0\n" KEPT(TEST_KEPT)                        \
	" ldr x1, [sp, #104]\n str x0, [x1]\n mov x0, x16\n" SAVED_PAIRS(LOAD_PAIR)            \
	" ldp x29, x30, [sp], #112\n .cfi_def_cfa_offset 0\n ret\n .cfi_endproc\n.popsection\n"

#endif
#endif
