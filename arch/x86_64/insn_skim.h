/*
 * A quick decoder for the instructions that a search for stack frames passes over: nine of ten, for
 * which Zydis takes ten times as long. Hides the lengths of instructions.
 */
#ifndef PTMEM_ARCH_X86_64_INSN_SKIM_H
#define PTMEM_ARCH_X86_64_INSN_SKIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skim_kind {
	SKIM_NONE,  /* decode it with Zydis: anything that is not below, and what is invalid */
	SKIM_PLAIN, /* neither rsp nor rbp is a register operand, and the next one follows */
	SKIM_CALL,
	SKIM_JCC,   /* a conditional jump; skim.to is set */
	SKIM_JMP,   /* a direct jump; skim.to is set */
};

struct skim {
	enum skim_kind kind;
	uint8_t length; /* bytes; 0 = SKIM_NONE */
	int32_t to;     /* the target, in bytes from the next instruction */
};

/* A struct skim in one register: stores of its members, loaded as a whole, would cost a third. */
static inline uint64_t skim_pack(enum skim_kind kind, unsigned length, int32_t to)
{
	return (uint64_t)(uint32_t)to << 32 | length << 8 | kind;
}

/* insn_skim, packed. */
uint64_t insn_skim_packed(const uint8_t *code, size_t size);

/* The instruction at @code, of which @size bytes may be read. */
static inline struct skim insn_skim(const uint8_t *code, size_t size)
{
	uint64_t packed = insn_skim_packed(code, size);

	return (struct skim){.kind = (enum skim_kind)(packed & 0xff),
			     .length = (uint8_t)(packed >> 8),
			     .to = (int32_t)(packed >> 32)};
}

#endif
