/*
 * What test_unwind needs of the CPU: registers as they are, and functions with made-up CFI or none.
 * Symbols are global: else aarch64's compiler would take the address of a local one from the GOT.
 */
#ifndef PTMEM_TESTS_UNIT_UNWIND_CPU_H
#define PTMEM_TESTS_UNIT_UNWIND_CPU_H

#include "arch/arch.h"

/* Fills the callee-saved registers, sp and pc as they are after its own return. */
void capture(struct arch_unwind_regs *regs);

/* Its first instruction raises SIGILL. The CFI of the byte before it is not its own. */
void fault_at_entry(void);

/* Its call ends it: the return address lies in the next function, with other CFI. */
void last_call(void (*callback)(void));

#if defined(__x86_64__)

__asm__(".pushsection .text\n.globl capture\n.type capture,@function\ncapture:\n"
	"	mov %rbx, 24(%rdi)\n	mov %rbp, 48(%rdi)\n"
	"	lea 8(%rsp), %rax\n	mov %rax, 56(%rdi)\n"
	"	mov %r12, 96(%rdi)\n	mov %r13, 104(%rdi)\n	mov %r14, 112(%rdi)\n	mov %r15, 120(%rdi)\n"
	"	mov (%rsp), %rax\n	mov %rax, 128(%rdi)\n	ret\n.size capture,.-capture\n.popsection\n");

__asm__(".pushsection .text\n.type before_fault,@function\nbefore_fault:\n"
	"	.cfi_startproc\n	.cfi_def_cfa_offset 4096\n	nop\n	.cfi_endproc\n"
	".globl fault_at_entry\n.type fault_at_entry,@function\nfault_at_entry:\n"
	"	.cfi_startproc\n	ud2\n	ret\n	.cfi_endproc\n.size fault_at_entry,.-fault_at_entry\n.popsection\n");

__asm__(".pushsection .text\n.globl last_call\n.type last_call,@function\nlast_call:\n"
	"	.cfi_startproc\n	sub $24, %rsp\n	.cfi_def_cfa_offset 32\n	call *%rdi\n	.cfi_endproc\n"
	".type after_last_call,@function\nafter_last_call:\n"
	"	.cfi_startproc\n	.cfi_def_cfa_offset 4096\n	ud2\n	.cfi_endproc\n.popsection\n");

/* push rbp; mov rsp,rbp; call *rdi; pop rbp; ret */
static const uint8_t jit_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#define JIT_RETURN 6 /* where the call returns to */
#define JIT_RULE 1   /* a rule is made from this code */

#elif defined(__aarch64__)

__asm__(".pushsection .text\n.globl capture\n.type capture,@function\ncapture:\n"
	"	stp x19, x20, [x0, #152]\n	stp x21, x22, [x0, #168]\n	stp x23, x24, [x0, #184]\n"
	"	stp x25, x26, [x0, #200]\n	stp x27, x28, [x0, #216]\n	stp x29, x30, [x0, #232]\n"
	"	mov x1, sp\n	stp x1, x30, [x0, #248]\n	ret\n.size capture,.-capture\n.popsection\n");

__asm__(".pushsection .text\n.type before_fault,@function\nbefore_fault:\n"
	"	.cfi_startproc\n	.cfi_def_cfa_offset 4096\n	nop\n	.cfi_endproc\n"
	".globl fault_at_entry\n.type fault_at_entry,@function\nfault_at_entry:\n"
	"	.cfi_startproc\n	.inst 0\n	ret\n	.cfi_endproc\n.size fault_at_entry,.-fault_at_entry\n.popsection\n");

__asm__(".pushsection .text\n.globl last_call\n.type last_call,@function\nlast_call:\n"
	"	.cfi_startproc\n	stp x29, x30, [sp, #-32]!\n	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n	.cfi_offset 30, -24\n	blr x0\n	.cfi_endproc\n"
	".type after_last_call,@function\nafter_last_call:\n"
	"	.cfi_startproc\n	.cfi_def_cfa_offset 4096\n	.inst 0\n	.cfi_endproc\n.popsection\n");

/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const uint8_t jit_code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
				   0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#define JIT_RETURN 12
#define JIT_RULE 0 /* the frame pointer is followed */

#endif
#endif
