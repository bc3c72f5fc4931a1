/*
 * Converts the instructions of a function to steps: what each reads, writes and moves, and where it
 * branches to, as far as values.c needs it. In case of doubt the worst is assumed: a register is
 * changed, a write may go anywhere.
 */
#include "arch/x86_64/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHANGED_BY_CALLS 0x0fc7u /* rax, rcx, rdx, rsi, rdi, r8 to r11 */

static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ?
		       (int)(whole - ZYDIS_REGISTER_RAX) :
		       -1;
}

/* A general register, at least the lower half of it: a write to it clears or sets the rest. */
static bool is_wide(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(o->reg.value) >= 0 &&
	       ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value) >= 32;
}

static bool is_sp(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value == ZYDIS_REGISTER_RSP;
}

/* A place at a constant distance from the stack pointer, encoded in the instruction. */
static bool is_on_stack(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base == ZYDIS_REGISTER_RSP &&
	       o->mem.index == ZYDIS_REGISTER_NONE && o->mem.segment == ZYDIS_REGISTER_SS &&
	       (o->mem.type == ZYDIS_MEMOP_TYPE_MEM || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN) &&
	       o->mem.disp.value > -X86_STACK_MAX && o->mem.disp.value < X86_STACK_MAX;
}

enum x86_flow x86_64_flow(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand)
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

bool x86_64_is_filled(const struct arch_code *code, size_t offset)
{
	while (offset < code->size && code->bytes[offset] == 0)
		offset++;
	return offset == code->size;
}

bool x86_64_is_padding(const ZydisDecodedInstruction *d)
{
	return d->mnemonic == ZYDIS_MNEMONIC_NOP || d->mnemonic == ZYDIS_MNEMONIC_INT3 ||
	       d->meta.category == ZYDIS_CATEGORY_NOP ||
	       d->meta.category == ZYDIS_CATEGORY_WIDENOP;
}

uint64_t x86_64_target(const ZydisDecodedInstruction *d, size_t offset)
{
	return d->raw.imm[0].is_relative ? offset + d->length + (uint64_t)d->raw.imm[0].value.s :
					   UINT64_MAX;
}

static void note_writes(struct x86_step *s, const ZydisDecodedInstruction *d,
			const ZydisDecodedOperand *operand)
{
	for (size_t i = 0; i < d->operand_count; i++) {
		const ZydisDecodedOperand *o = &operand[i];
		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		int n = o->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(o->reg.value) : -1;
		if (n >= 0)
			s->changed |= (uint16_t)(1u << n);
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (!is_on_stack(o) || s->destination == TO_STACK) {
			s->writes_anywhere = true;
			continue;
		}
		s->destination = TO_STACK;
		s->place = (int32_t)o->mem.disp.value;
		s->size = (uint8_t)(o->size / 8 < UINT8_MAX ? o->size / 8 : UINT8_MAX);
	}
	if (d->meta.category == ZYDIS_CATEGORY_CALL) {
		s->changed |= CHANGED_BY_CALLS;
		s->changed &= (uint16_t)~(1u << X86_REGISTER_SP);
	}
	if (s->is_syscall)
		s->changed |= 1u << X86_REGISTER_RESULT; /* the decoder reports rcx and r11 */
	s->writes_anywhere |= s->is_call || s->is_syscall ||
		d->meta.category == ZYDIS_CATEGORY_SYSCALL ||
			      d->meta.category == ZYDIS_CATEGORY_INTERRUPT; /* the kernel */
}

static void note_source(struct x86_step *s, const ZydisDecodedOperand *o)
{
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		s->source = FROM_CONSTANT;
		s->value = (int32_t)o->imm.value.u;
	} else if (is_wide(o)) {
		s->source = FROM_REGISTER;
		s->from = (uint8_t)number_of(o->reg.value);
	} else if (is_on_stack(o) && o->size >= 32) {
		s->source = FROM_STACK;
		s->value = (int32_t)o->mem.disp.value;
	}
}

static void note_move(struct x86_step *s, const ZydisDecodedOperand *operand)
{
	s->is_half = operand[0].size == 32;
	if (is_wide(&operand[0])) {
		s->destination = TO_REGISTER;
		s->to = (uint8_t)number_of(operand[0].reg.value);
		note_source(s, &operand[1]);
	} else if (s->destination == TO_STACK && operand[0].size >= 32) {
		note_source(s, &operand[1]);
	}
}

static bool is_zeroing(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand)
{
	return (d->mnemonic == ZYDIS_MNEMONIC_XOR || d->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       is_wide(&operand[0]) && operand[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operand[0].reg.value == operand[1].reg.value;
}

/* Instructions that change the stack pointer by a known distance. */
static void note_stack(struct x86_step *s, const ZydisDecodedInstruction *d,
		       const ZydisDecodedOperand *operand)
{
	int64_t moves = 0;

	if (d->mnemonic == ZYDIS_MNEMONIC_PUSH && d->operand_width == 64) {
		s->destination = TO_PUSH;
		s->writes_anywhere = false;
		note_source(s, &operand[0]);
		moves = -X86_WORD;
	} else if (d->mnemonic == ZYDIS_MNEMONIC_POP && d->operand_width == 64 &&
		   is_wide(&operand[0]) && !is_sp(&operand[0])) {
		s->destination = TO_REGISTER;
		s->to = (uint8_t)number_of(operand[0].reg.value);
		s->source = FROM_STACK;
		s->value = 0;
		moves = X86_WORD;
	} else if (d->operand_count_visible < 2 || !is_sp(&operand[0])) {
		return;
	} else if (d->mnemonic == ZYDIS_MNEMONIC_LEA && is_on_stack(&operand[1])) {
		moves = operand[1].mem.disp.value;
	} else if (operand[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		return;
	} else if (d->mnemonic == ZYDIS_MNEMONIC_ADD) {
		moves = operand[1].imm.value.s;
	} else if (d->mnemonic == ZYDIS_MNEMONIC_SUB) {
		moves = -operand[1].imm.value.s;
	}
	if (moves == 0 || moves < -X86_STACK_MAX || moves > X86_STACK_MAX)
		return;
	s->moves_stack = (int32_t)moves;
	s->changed &= (uint16_t)~(1u << X86_REGISTER_SP);
}

static void note_effect(struct x86_step *s, const ZydisDecodedInstruction *d,
			const ZydisDecodedOperand *operand)
{
	note_writes(s, d, operand);
	if (d->operand_count_visible >= 2 && d->mnemonic == ZYDIS_MNEMONIC_MOV)
		note_move(s, operand);
	else if (d->operand_count_visible >= 2 && is_zeroing(d, operand)) {
		s->destination = TO_REGISTER;
		s->to = (uint8_t)number_of(operand[0].reg.value);
		s->source = FROM_CONSTANT;
		s->value = 0;
	} else if (d->operand_count_visible >= 1) {
		note_stack(s, d, operand);
	}
}

static void decode_all(const struct arch_code *c, struct x86_values *out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < c->size; i += d.length, out->decoded = i) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, c->bytes + i, c->size - i, &d,
							 operand)))
			return;
		struct x86_step *s = &out->step[out->count++];
		uint64_t target = x86_64_target(&d, i);
		bool is_call = d.meta.category == ZYDIS_CATEGORY_CALL;
		memset(s, 0, offsetof(struct x86_step, before));
		s->offset = (uint32_t)i;
		s->flow = (uint8_t)x86_64_flow(&d, operand);
		s->is_call = is_call;
		s->is_padding = x86_64_is_padding(&d);
		s->is_syscall = d.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
		s->target = target < c->size && !is_call ? (uint32_t)target : X86_NO_TARGET;
		s->leads_to = d.raw.imm[0].is_relative ? c->at + target : 0;
		out->has_table |= s->flow == FLOW_ANYWHERE;
		note_effect(s, &d, operand);
		out->at[i] = (uint32_t)out->count;
	}
}

int x86_64_values_read(const struct arch_code *code, struct x86_values *out)
{
	*out = (struct x86_values){.step = malloc((code->size + 1) * sizeof(*out->step)),
				   .at = calloc(code->size + 1, sizeof(*out->at))};
	if (!out->step || !out->at) {
		x86_64_values_deinit(out);
		return -ENOMEM;
	}
	decode_all(code, out);
	return 0;
}

void x86_64_values_deinit(struct x86_values *v)
{
	free(v->step);
	free(v->at);
	*v = (struct x86_values){0};
}
