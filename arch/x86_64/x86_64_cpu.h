/* The sizes of arch/arch.h and arch/unwind_rule.h for x86-64. */
#ifndef PTMEM_ARCH_X86_64_X86_64_CPU_H
#define PTMEM_ARCH_X86_64_X86_64_CPU_H

#define ARCH_REG_WORDS 27     /* words of the largest NT_PRSTATUS set */
#define ARCH_DWARF_REGS 17    /* DWARF columns that unwinding needs; the last is the pc */
#define ARCH_MAX_INSN 16      /* longest instruction, bytes */
#define ARCH_ADDRESS_BITS 47  /* of addresses in user space */
#define ARCH_MAX_CALL 7       /* longest call instruction that a return address can follow, bytes */
#define ARCH_RETURN_SIZE 8    /* bytes of a return address that a call pushes */
#define ARCH_SIGRETURN_SIZE 9 /* bytes that identify the signal trampoline */

/*
 * Callee-saved registers that an unwind rule can restore, besides sp and pc. Index 0 is the frame
 * pointer; the others are named by struct arch.
 */
#define RULE_SAVED_REGS 6

/*
 * The word from the CFA in which every frame has its return address. Not defined where frames
 * differ: then each rule has it.
 */
#define RULE_RETURN_SLOT (-1)

#endif
