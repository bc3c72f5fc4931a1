/*
 * System call instructions in compiled code, and the numbers that they call by.
 *
 * A function is decoded from its start. Then constants are carried through it, from
 * instruction to instruction and over its branches, until nothing changes: a
 * register's value is a constant or unknown, and where two ways meet that bring
 * different ones, it is unknown. What a call may change is unknown behind it, and so
 * is everything at the function's start, at entries from elsewhere, and where no way
 * is seen to lead. A jump through a table may lead to any instruction: a function with
 * one tells no number.
 *
 *	mov $9, %eax      rax = 9
 *	mov %ebp, %eax    rax = rbp
 *	syscall           number = rax
 */
#include <Zydis/Zydis.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"

#define UNKNOWN INT32_MIN
#define REGISTERS \
	16 /* as instructions number them: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15 */
#define RAX 0
#define CHANGED_BY_CALLS 0x0fc7u /* rax, rcx, rdx, rsi, rdi, r8 to r11 */
#define NOWHERE UINT32_MAX

enum flow { FLOW_ON, FLOW_BRANCH, FLOW_JUMP, FLOW_ANYWHERE, FLOW_END };

struct step {
	uint32_t offset;
	uint8_t flow;      /* enum flow */
	bool is_syscall, is_reached;
	int8_t to, from;   /* the register that gets a known value, and whose; -1 = none */
	int32_t constant;  /* for to, if from is -1 */
	uint16_t changed;  /* registers that get unknown values */
	uint32_t target;   /* index of a step; NOWHERE: outside */
	int32_t before[REGISTERS]; /* once it is reached */
};

struct code {
	struct step *step;
	size_t count;
	uint32_t *at;      /* by offset: index + 1 of the step that begins there */
	bool has_changed, has_table;
};

/* -- decoding -- */

static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ?
		       (int)(whole - ZYDIS_REGISTER_RAX) :
		       -1;
}

/* A write to half of a register or more clears or sets the rest. */
static bool is_wide(ZydisRegister reg)
{
	return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) >= 32;
}

static enum flow flow_of(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand)
{
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return FLOW_BRANCH;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return FLOW_JUMP;
		/* a pointer to a function, not a table */
		return operand[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				       operand[0].mem.base == ZYDIS_REGISTER_RIP ?
			       FLOW_END :
			       FLOW_ANYWHERE;
	case ZYDIS_CATEGORY_RET:
		return FLOW_END;
	default:
		return d->mnemonic == ZYDIS_MNEMONIC_UD2 || d->mnemonic == ZYDIS_MNEMONIC_HLT ?
			       FLOW_END :
			       FLOW_ON;
	}
}

static void note_effect(struct step *s, const ZydisDecodedInstruction *d,
			const ZydisDecodedOperand *operand)
{
	bool is_pair = d->operand_count >= 2 && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
	bool is_register = is_pair && operand[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	bool is_zeroing = is_register && operand[0].reg.value == operand[1].reg.value &&
			  (d->mnemonic == ZYDIS_MNEMONIC_XOR || d->mnemonic == ZYDIS_MNEMONIC_SUB);

	for (size_t i = 0; i < d->operand_count; i++) {
		int n = operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER ?
				number_of(operand[i].reg.value) :
				-1;
		if (n >= 0 && operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			s->changed |= (uint16_t)(1u << n);
	}
	if (d->meta.category == ZYDIS_CATEGORY_CALL)
		s->changed |= CHANGED_BY_CALLS;
	if (s->is_syscall)
		s->changed |= 1u << RAX; /* the kernel's result; the decoder knows of rcx and r11 */
	if (!is_pair || !is_wide(operand[0].reg.value) || number_of(operand[0].reg.value) < 0)
		return;
	if (is_zeroing || (d->mnemonic == ZYDIS_MNEMONIC_MOV &&
			   operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)) {
		s->to = (int8_t)number_of(operand[0].reg.value);
		s->constant = is_zeroing ? 0 : (int32_t)operand[1].imm.value.u;
	} else if (d->mnemonic == ZYDIS_MNEMONIC_MOV && is_register &&
		   is_wide(operand[1].reg.value)) {
		s->to = (int8_t)number_of(operand[0].reg.value);
		s->from = (int8_t)number_of(operand[1].reg.value);
	}
}

/* Whether anything from @offset on looks like a system call instruction. */
static bool has_pattern(const struct arch_code *c, size_t offset)
{
	return memmem(c->bytes + offset, c->size - offset, arch_native->syscall_insn,
		      arch_native->syscall_insn_size);
}

/* Where a direct branch of @d leads, as an offset; or a number beyond the code's size. */
static uint64_t target_of(const ZydisDecodedInstruction *d, size_t offset)
{
	return d->raw.imm[0].is_relative ? offset + d->length + (uint64_t)d->raw.imm[0].value.s :
					   UINT64_MAX;
}

/* Returns the system calls found, -EILSEQ. Targets are offsets for now. */
static ssize_t decode_all(const struct arch_code *c, struct code *out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	ssize_t found = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < c->size; i += d.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, c->bytes + i, c->size - i, &d,
							 operand)))
			return has_pattern(c, i) ? -EILSEQ : found;
		struct step *s = &out->step[out->count++];
		uint64_t target = target_of(&d, i);
		*s = (struct step){.offset = (uint32_t)i,
				   .flow = (uint8_t)flow_of(&d, operand),
				   .to = -1,
				   .from = -1,
				   .is_syscall = d.mnemonic == ZYDIS_MNEMONIC_SYSCALL,
				   .target = target < c->size ? (uint32_t)target : NOWHERE};
		if (d.meta.category == ZYDIS_CATEGORY_CALL)
			s->target = NOWHERE;
		out->has_table |= s->flow == FLOW_ANYWHERE;
		note_effect(s, &d, operand);
		out->at[i] = (uint32_t)out->count;
		found += s->is_syscall;
	}
	return found;
}

/* -- constants -- */

/* A way leads to step @i that brings the values @from. */
static void reach(struct code *c, size_t i, const int32_t *from)
{
	struct step *s = &c->step[i];

	if (!s->is_reached) {
		s->is_reached = c->has_changed = true;
		memcpy(s->before, from, sizeof(s->before));
		return;
	}
	for (int r = 0; r < REGISTERS; r++) {
		if (s->before[r] != from[r] && s->before[r] != UNKNOWN) {
			s->before[r] = UNKNOWN;
			c->has_changed = true;
		}
	}
}

static void reach_unknown(struct code *c, size_t i)
{
	int32_t unknown[REGISTERS];

	for (int r = 0; r < REGISTERS; r++)
		unknown[r] = UNKNOWN;
	reach(c, i, unknown);
}

static void pass(struct code *c, size_t i)
{
	const struct step *s = &c->step[i];
	int32_t after[REGISTERS];

	memcpy(after, s->before, sizeof(after));
	for (int r = 0; r < REGISTERS; r++) {
		if (s->changed >> r & 1)
			after[r] = UNKNOWN;
	}
	if (s->to >= 0)
		after[s->to] = s->from >= 0 ? s->before[s->from] : s->constant;
	if ((s->flow == FLOW_ON || s->flow == FLOW_BRANCH) && i + 1 < c->count)
		reach(c, i + 1, after);
	if ((s->flow == FLOW_BRANCH || s->flow == FLOW_JUMP) && s->target != NOWHERE)
		reach(c, s->target, after);
}

static void carry(struct code *c)
{
	do {
		c->has_changed = false;
		for (size_t i = 0; i < c->count; i++) {
			if (c->step[i].is_reached)
				pass(c, i);
		}
		for (size_t i = 0; i < c->count && !c->has_changed; i++) {
			if (!c->step[i].is_reached)
				reach_unknown(c, i);
		}
	} while (c->has_changed);
}

/* Branches into the middle of an instruction: what runs there was not decoded. */
static bool link_targets(struct code *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct step *s = &c->step[i];
		if (s->target == NOWHERE)
			continue;
		if (!c->at[s->target])
			return false;
		s->target = c->at[s->target] - 1;
	}
	return true;
}

static size_t take_found(const struct code *c, bool is_linked, struct arch_syscall *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct step *s = &c->step[i];
		if (!s->is_syscall)
			continue;
		if (n < max)
			out[n] = (struct arch_syscall){s->offset,
						       is_linked && s->before[RAX] != UNKNOWN ?
							       s->before[RAX] :
							       ARCH_SYSCALL_ANY};
		n++;
	}
	return n;
}

static ssize_t find_in(const struct arch_code *code, struct code *c, struct arch_syscall *out,
		       size_t max)
{
	ssize_t found = decode_all(code, c);

	if (found <= 0 || max == 0)
		return found;
	bool is_linked = !c->has_table && link_targets(c);
	reach_unknown(c, 0);
	for (size_t i = 0; i < code->entry_count && is_linked; i++) {
		is_linked = c->at[code->entry[i]] != 0;
		if (is_linked)
			reach_unknown(c, c->at[code->entry[i]] - 1);
	}
	if (is_linked)
		carry(c);
	return (ssize_t)take_found(c, is_linked, out, max);
}

ssize_t x86_64_find_syscalls(const struct arch_code *code, struct arch_syscall *out, size_t max)
{
	ssize_t found = -ENOMEM;

	if (!has_pattern(code, 0))
		return 0;
	struct code c = {.step = malloc(code->size * sizeof(*c.step)),
			 .at = calloc(code->size, sizeof(*c.at))};
	if (c.step && c.at)
		found = find_in(code, &c, out, max);
	free(c.step);
	free(c.at);
	return found;
}

void x86_64_each_branch_out(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			    void *ctx)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < code->size; i += d.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &decoder, ZYAN_NULL, code->bytes + i, code->size - i, &d)))
			return;
		uint64_t target = target_of(&d, i);
		if (d.raw.imm[0].is_relative && target >= code->size)
			fn(ctx, code->at + target);
	}
}
