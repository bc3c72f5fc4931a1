/* The sizes of arch/arch.h and arch/unwind_rule.h for aarch64. */
#ifndef PTMEM_ARCH_AARCH64_AARCH64_CPU_H
#define PTMEM_ARCH_AARCH64_AARCH64_CPU_H

#define ARCH_REG_WORDS 36     /* NT_PRSTATUS (34), NT_ARM_SYSTEM_CALL, NT_ARM_TLS */
#define ARCH_DWARF_REGS 33    /* x0 to x30, sp, pc */
#define ARCH_MAX_INSN 4       /* size of every instruction, bytes */
#define ARCH_ADDRESS_BITS 48  /* of addresses in user space, unless a program asks for more */
#define ARCH_MAX_CALL 4       /* size of a call, bytes */
#define ARCH_RETURN_SIZE 0    /* bytes of a return address that a call pushes */
#define ARCH_SIGRETURN_SIZE 8 /* bytes that identify the signal trampoline */

#define ARCH_SIGNS_RETURNS 1 /* return addresses may have a pointer authentication code */

/* x29, which is the frame pointer, and x19 to x28. */
#define RULE_SAVED_REGS 11

#endif
