/* Shared by the files of this directory. No other file includes it. */
#ifndef PTMEM_ARCH_X86_64_X86_64_H
#define PTMEM_ARCH_X86_64_X86_64_H

#include "arch/arch.h"

/* The words of struct arch_regs. */
enum x86_word {
	R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, ORIG_RAX,
	RIP, CS, EFLAGS, RSP, SS, FS_BASE, GS_BASE, DS, ES, FS, GS, WORD_COUNT
};

#define X86_JUMP_SIZE 5 /* jmp rel32 */
#define X86_ENDBR64_SIZE 4
#define X86_TRAP 0xcc      /* int3 */
#define X86_RETURN 0xc3    /* ret */
#define X86_SYSCALL 0x0f, 0x05
#define X86_SYSCALL_SIZE 2

bool x86_64_is_entered(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
		       size_t size);

int x86_64_parse_operand(const char *text, size_t size, struct arch_operand *out);

int x86_64_relocate(struct arch_move *m);
int x86_64_make_stub(struct arch_move *m, struct arch_stub *stub_out);

ssize_t x86_64_find_syscalls(const struct arch_code *code, struct arch_syscall *out, size_t max);
bool x86_64_is_likely_syscall(const struct arch_code *code, size_t offset);
int x86_64_each_branch_out(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			   void *ctx);
bool x86_64_each_again(const struct arch_code *code, size_t start,
		       void (*fn)(void *ctx, taddr_t at), void *ctx);
ssize_t x86_64_find_passed(const struct arch_code *code, taddr_t target, struct arch_value wanted,
			   struct arch_value *out, size_t max);
bool x86_64_has_call(const struct arch_code *code, taddr_t target);
void x86_64_each_hint(const struct arch_code *code, taddr_t start, taddr_t end,
		      void (*fn)(void *ctx, taddr_t at), void *ctx);
int x86_64_refers(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end);
void x86_64_each_fact(const struct arch_code *code,
		      void (*fn)(void *ctx, const struct arch_fact *fact), void *ctx);
bool x86_64_uses_stack_arguments(const struct arch_code *code, taddr_t *jumps_to_out);
size_t x86_64_make_syscall_stub(taddr_t from, taddr_t at, uint8_t *out, size_t out_size);

/* A jump or call (@opcode 0xe9, 0xe8) at address @at to @target: 5 bytes at @out, or -ERANGE. */
int x86_64_branch(uint8_t opcode, taddr_t at, taddr_t target, uint8_t *out);

#endif
