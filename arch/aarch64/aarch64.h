/* Shared by the files of this directory. No other file includes it. */
#ifndef PTMEM_ARCH_AARCH64_AARCH64_H
#define PTMEM_ARCH_AARCH64_AARCH64_H

#include <string.h>

#include "arch/arch.h"

/* The words of struct arch_regs: x0 to x30 are 0 to 30. */
enum aarch64_word { A64_FP = 29, A64_LR, A64_SP, A64_PC, A64_PSTATE, A64_SYSCALL, A64_TLS };

#define A64_SIZE 4u             /* of each instruction, bytes */
#define A64_BRK 0xd4200000u     /* brk #0 */
#define A64_NOP 0xd503201fu
#define A64_RET 0xd65f03c0u
#define A64_SVC 0xd4000001u     /* svc #0 */
#define A64_BRANCH 0x14000000u  /* b */
#define A64_CALL 0x94000000u    /* bl */
#define A64_BYTES(insn)                                                                  \
	{                                                                                \
		(insn) & 0xff, (insn) >> 8 & 0xff, (insn) >> 16 & 0xff, (insn) >> 24     \
	}

/* Instructions are little-endian, whatever data is. */
static inline uint32_t a64_load(const uint8_t *code)
{
	return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
	       (uint32_t)code[3] << 24;
}

static inline void a64_store(uint8_t *out, uint32_t insn)
{
	const uint8_t bytes[] = A64_BYTES(insn);

	memcpy(out, bytes, sizeof(bytes));
}

/* The number in the @bits bits of @insn from bit @from on, with its sign. */
static inline int64_t a64_signed(uint32_t insn, unsigned from, unsigned bits)
{
	return (int64_t)((uint64_t)insn << (64 - from - bits)) >> (64 - bits);
}

/* Instructions whose effect depends on their own address, but for calls by register. */
enum a64_kind {
	A64_OTHER,        /* none of these */
	A64_IS_BRANCH,    /* b */
	A64_IS_CALL,      /* bl */
	A64_IS_CONDITION, /* b.cond, cbz, cbnz, tbz, tbnz */
	A64_IS_ADDRESS,   /* adr, adrp */
	A64_IS_LOAD,      /* ldr of a literal, to a general register */
	A64_IS_UNKNOWN,   /* a literal load of another kind, or no instruction */
};

/* The kind of @insn at @at, and in *to_out the address that it means. */
enum a64_kind a64_decode(uint32_t insn, taddr_t at, taddr_t *to_out);

/* A branch (@insn is A64_BRANCH or A64_CALL) at @at to @to: false if it is too far. */
bool a64_branch(uint32_t insn, taddr_t at, taddr_t to, uint32_t *insn_out);

int aarch64_relocate(struct arch_move *m);
int aarch64_make_stub(struct arch_move *m, struct arch_stub *stub_out);
bool aarch64_is_entered(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
			size_t size);
ssize_t aarch64_find_syscalls(const struct arch_code *code, struct arch_syscall *out, size_t max);
bool aarch64_is_likely_syscall(const struct arch_code *code, size_t offset);
int aarch64_each_branch_out(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			    void *ctx);
bool aarch64_each_again(const struct arch_code *code, size_t start,
			void (*fn)(void *ctx, taddr_t at), void *ctx);
ssize_t aarch64_find_passed(const struct arch_code *code, taddr_t target, struct arch_value wanted,
			    struct arch_value *out, size_t max);
void aarch64_each_hint(const struct arch_code *code, taddr_t start, taddr_t end,
		       void (*fn)(void *ctx, taddr_t at), void *ctx);
bool aarch64_has_call(const struct arch_code *code, taddr_t target);
int aarch64_refers(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end);
void aarch64_each_fact(const struct arch_code *code,
		       void (*fn)(void *ctx, const struct arch_fact *fact), void *ctx);
int aarch64_parse_operand(const char *text, size_t size, struct arch_operand *out);
bool aarch64_uses_stack_arguments(const struct arch_code *code, taddr_t *jumps_to_out);
size_t aarch64_make_syscall_stub(taddr_t from, taddr_t at, uint8_t *out, size_t out_size);

#endif
