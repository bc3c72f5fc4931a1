/*
 * The contents of a function's registers and stack words before each of its instructions, if they
 * are the same on all paths: a constant, or the caller's value. Internal to this directory.
 */
#ifndef PTMEM_ARCH_X86_64_VALUES_H
#define PTMEM_ARCH_X86_64_VALUES_H

#include <Zydis/Zydis.h>

#include "arch/arch.h"

/* in instruction encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15 */
#define X86_REGISTERS 16
#define X86_SLOTS 8      /* stack words whose values are tracked */

#define X86_REGISTER_SP 4
#define X86_REGISTER_RESULT 0
#define X86_WORD 8
/* Frames are not larger; keeps sums of offsets far from overflow. */
#define X86_STACK_MAX (1 << 24)
#define X86_NO_TARGET UINT32_MAX

enum x86_flow { FLOW_ON, FLOW_BRANCH, FLOW_JUMP, FLOW_ANYWHERE, FLOW_END };

/* Where an instruction takes a value from, and where it stores it. */
enum x86_source { FROM_NOWHERE, FROM_CONSTANT, FROM_REGISTER, FROM_STACK };
enum x86_destination { TO_NOWHERE, TO_REGISTER, TO_STACK, TO_PUSH };

struct x86_state {
	struct arch_value reg[X86_REGISTERS];
	struct x86_slot {
		int32_t offset;            /* from the stack pointer at the function's start */
		struct arch_value value;
	} slot[X86_SLOTS];
	uint8_t slot_count;
	/* nothing was written to the caller's part of the stack */
	bool is_outer_intact;
};

struct x86_step {
	uint32_t offset;
	uint8_t flow;          /* enum x86_flow */
	bool is_syscall, is_call, is_padding, is_reached;
	bool is_half;          /* moves 32 bits */
	bool writes_anywhere;  /* any word of the stack may change */
	uint8_t source, destination;   /* enum x86_source, x86_destination */
	uint8_t from, to;      /* registers */
	uint8_t size;          /* size of a write to the stack, bytes; 255: or more */
	/* the constant; or the source's offset from the stack pointer */
	int32_t value;
	int32_t place;         /* the destination's offset from the stack pointer */
	int32_t moves_stack;   /* added to the stack pointer */
	uint16_t changed;      /* registers that become unknown */
	uint32_t target;       /* of a branch inside: index of a step; X86_NO_TARGET: outside */
	taddr_t leads_to;      /* of a direct branch or call; 0: none */
	struct x86_state before; /* a path leads to it */
};

struct x86_values {
	struct x86_step *step; /* owned */
	size_t count;
	uint32_t *at;          /* by offset: index + 1 of the step that begins there; owned */
	size_t decoded;        /* bytes of it */
	bool has_changed, has_table;
	bool is_known;         /* the steps' before are valid: otherwise everything is unknown */
};

/* values.c */
/* Decodes @code as far as possible: 0, -ENOMEM. The caller deinits *out. */
int x86_64_values_read(const struct arch_code *code, struct x86_values *out);
void x86_64_values_deinit(struct x86_values *v);

/* values.c */
/* Propagates values along all paths. */
void x86_64_values_carry(const struct arch_code *code, struct x86_values *v);

/* The value of the word at @offset from @s's stack pointer. */
struct arch_value x86_64_values_on_stack(const struct x86_state *s, int32_t offset);

/* values.c */
/* How control flow continues after @d. @operand: its operands. */
enum x86_flow x86_64_flow(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand);

/* Whether there are only zeros from @offset on, with which linkers fill sections. */
bool x86_64_is_filled(const struct arch_code *code, size_t offset);

static inline bool x86_64_is_register(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == reg;
}

/* Whether @d is a no-op that fills space between code. */
bool x86_64_is_padding(const ZydisDecodedInstruction *d);

/* The target of a direct branch of @d, at @offset, as an offset; UINT64_MAX: it is none. */
uint64_t x86_64_target(const ZydisDecodedInstruction *d, size_t offset);

#endif
