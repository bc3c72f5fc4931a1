/*
 * Information for an unwinder from machine code itself, if there is no CFI: whether an address
 * follows a call, whether it is the signal trampoline, what a function has done to its stack up to
 * some point.
 */
#ifndef PTMEM_ARCH_UNWIND_CODE_H
#define PTMEM_ARCH_UNWIND_CODE_H

#include "arch/arch.h"
#include "arch/unwind_rule.h"

/* Whether the last of the @size bytes at @code, which precede a return address, are a call. */
bool arch_ends_in_call(const uint8_t *code, size_t size);

/*
 * If @code restores one callee-saved register from the top of the stack and returns to the address
 * after it, in the next word: the index of the register in arch.dwarf_saved, else -1.
 */
int arch_pops_and_returns(const uint8_t *code, size_t size);

/*
 * Whether a return to @code + @at (of @size bytes) is one to a function that called on another
 * stack than its own and goes back to its own then, as Go's runtime.asmcgocall does. If so,
 * *rule_out gets kind, cfa_offset, saved, slot and own_g.
 */
bool arch_returns_to_other_stack(const uint8_t *code, size_t at, size_t size,
				 struct unwind_rule *rule_out);

#define ARCH_SWITCH_BEFORE 64 /* bytes around the call that this reads */
#define ARCH_SWITCH_AFTER 64

/* Whether @code begins with the signal trampoline. */
bool arch_is_sigreturn(const uint8_t *code, size_t size);

/*
 * Where the kernel saved the registers: offsets from the stack pointer in the trampoline, by DWARF
 * number.
 */
extern const uint16_t arch_sigframe_offset[ARCH_DWARF_REGS];

/*
 * The last place before @at in @code, whose address is @vaddr, at which a function evidently
 * begins: it is aligned, and either the linker has filled the space before it, or a frame
 * pointer is set up there. False if there is none.
 */
bool arch_find_entry(const uint8_t *code, size_t at, uint64_t vaddr, size_t *entry_out);

enum arch_scan {
	ARCH_SCAN_ONE,      /* the code is one function, from its entry */
	ARCH_SCAN_GENERATED, /* the same, unless it calls other code to make its frame */
	ARCH_SCAN_MANY,     /* consecutive functions, from the entry of the first one */
	ARCH_SCAN_ALIGNED,  /* the same, with entries where arch_find_entry would find them */
	ARCH_SCAN_UNSYNCED, /* the code starts anywhere */
};

/*
 * The rule for the point @at bytes into @code, found by reading the instructions before it. Sets
 * kind, cfa_offset, saved and slot of *rule_out; -ENOTSUP if the code changes its stack in an
 * unsupported way, or the start of the function cannot be determined.
 */
int arch_scan_function(const uint8_t *code, size_t at, enum arch_scan how,
		       struct unwind_rule *rule_out);

/*
 * The same for code whose start is unknown, or that saves registers in unusual ways: the return
 * address is @at bytes into @code, and what the instructions from there to a return restore is what
 * is on the stack. At conditional branches that which follows is tried first. Where no return is
 * found, variables below a frame pointer show that there is one; else -ENOTSUP. Wrong after a call
 * that does not return, if another function follows that seems to be a part of this one.
 */
int arch_scan_return(const uint8_t *code, size_t size, size_t at, struct unwind_rule *rule_out);

#endif
