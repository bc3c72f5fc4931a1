/*
 * The values in a function's registers and stack (values.h). Each instruction becomes a step, what
 * it moves where; then states are propagated along all paths until nothing changes. What two paths
 * have differently is unknown.
 */
#include "arch/x86_64/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"

/*
 * Converts the instructions of a function to steps: what each reads, writes and moves, and where it
 * branches to, as far as values.c needs it. In case of doubt the worst is assumed: a register is
 * changed, a write may go anywhere.
 */

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

/*
 * Propagates constants and arguments through a function, along instructions and branches, until
 * nothing changes. Where paths with different values meet, the value is unknown; so it is at
 * entries from elsewhere and in code that no known path reaches. After a jump through a table,
 * which may lead to any instruction, everything is unknown.
 *
 *	mov $9, %eax          rax = 9
 *	mov %esi, %eax        rax = rsi at the start
 *	push $9               the word at the stack pointer = 9
 *	push 0x18(%rsp)       the word at the stack pointer = a word pushed by the caller
 *	mov %rax, (%rdi)      all words of the stack become unknown: rdi may point there
 *	call                  the same; and registers that a call may change
 */

#define ALIGNED 8u /* minimum alignment of code after padding */

static const struct arch_value unknown = {.kind = ARCH_VALUE_UNKNOWN};

/* -- states -- */

static bool is_same(struct arch_value a, struct arch_value b)
{
	return a.kind == b.kind && a.number == b.number;
}

/* Words that overlap @size bytes at @offset become unknown. */
static void forget_words(struct x86_state *s, int32_t offset, int32_t size)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < s->slot_count; i++) {
		int32_t at = s->slot[i].offset;
		if (at + X86_WORD <= offset || at >= offset + size)
			s->slot[kept++] = s->slot[i];
	}
	s->slot_count = kept;
	if (offset + size > X86_WORD)
		s->is_outer_intact = false;
}

static void put_word(struct x86_state *s, int32_t offset, struct arch_value value)
{
	if (value.kind == ARCH_VALUE_UNKNOWN)
		return;
	if (s->slot_count == X86_SLOTS) { /* drops the oldest */
		memmove(s->slot, s->slot + 1, sizeof(s->slot) - sizeof(s->slot[0]));
		s->slot_count--;
	}
	s->slot[s->slot_count++] = (struct x86_slot){offset, value};
}

struct arch_value x86_64_values_on_stack(const struct x86_state *s, int32_t offset)
{
	const struct arch_value *sp = &s->reg[X86_REGISTER_SP];
	int32_t at = sp->number + offset;

	if (sp->kind != ARCH_VALUE_ADDRESS)
		return unknown;
	for (uint8_t i = 0; i < s->slot_count; i++) {
		if (s->slot[i].offset == at)
			return s->slot[i].value;
	}
	/* below are the return address and the function's own frame */
	if (at >= X86_WORD && s->is_outer_intact)
		return (struct arch_value){.kind = ARCH_VALUE_STACK, .number = at};
	return unknown;
}

/* Half of an address is unknown. */
static struct arch_value narrow(const struct x86_step *s, struct arch_value v)
{
	return s->is_half && v.kind == ARCH_VALUE_ADDRESS ? unknown : v;
}

static struct arch_value value_of(const struct x86_step *s)
{
	switch (s->source) {
	case FROM_CONSTANT:
		return (struct arch_value){.kind = ARCH_VALUE_CONSTANT, .number = s->value};
	case FROM_REGISTER:
		return narrow(s, s->before.reg[s->from]);
	case FROM_STACK:
		return narrow(s, x86_64_values_on_stack(&s->before, s->value));
	default:
		return unknown;
	}
}

/* A signal may change memory below the stack pointer at any time. */
static void forget_below(struct x86_state *s)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < s->slot_count; i++) {
		if (s->slot[i].offset >= s->reg[X86_REGISTER_SP].number)
			s->slot[kept++] = s->slot[i];
	}
	s->slot_count = kept;
}

/* The stack as @s leaves it. */
static void step_stack(const struct x86_step *s, struct arch_value value, struct x86_state *after)
{
	struct arch_value *sp = &after->reg[X86_REGISTER_SP];
	bool is_known = sp->kind == ARCH_VALUE_ADDRESS;

	if (is_known && s->destination == TO_STACK) {
		forget_words(after, sp->number + s->place, s->size);
		if (s->size == X86_WORD || s->size == X86_WORD / 2)
			put_word(after, sp->number + s->place, value);
	}
	if (is_known)
		sp->number += s->moves_stack;
	if (is_known && s->destination == TO_PUSH) {
		forget_words(after, sp->number, X86_WORD);
		put_word(after, sp->number, value);
	}
	if (s->writes_anywhere || s->size == UINT8_MAX || !is_known ||
	    sp->number < -X86_STACK_MAX || sp->number > X86_STACK_MAX) {
		after->slot_count = 0;
		after->is_outer_intact = false;
	}
	if (sp->number < -X86_STACK_MAX || sp->number > X86_STACK_MAX)
		*sp = unknown;
	if (s->moves_stack > 0 || s->destination == TO_REGISTER)
		forget_below(after);
}

/* -- paths -- */

static bool merge_slots(struct x86_state *s, const struct x86_state *from)
{
	uint8_t kept = 0, count = s->slot_count;

	for (uint8_t i = 0; i < count; i++) {
		const struct x86_slot slot = s->slot[i];
		bool is_in_both = false;
		for (uint8_t k = 0; k < from->slot_count; k++)
			is_in_both |= from->slot[k].offset == slot.offset &&
				      is_same(from->slot[k].value, slot.value);
		if (is_in_both)
			s->slot[kept++] = slot;
	}
	s->slot_count = kept;
	return kept != count;
}

/* A path leads to step @i with the values @from. */
static void reach(struct x86_values *v, size_t i, const struct x86_state *from)
{
	struct x86_step *s = &v->step[i];

	if (!s->is_reached) {
		s->is_reached = v->has_changed = true;
		s->before = *from;
		return;
	}
	for (int r = 0; r < X86_REGISTERS; r++) {
		if (!is_same(s->before.reg[r], from->reg[r]) &&
		    s->before.reg[r].kind != ARCH_VALUE_UNKNOWN) {
			s->before.reg[r] = unknown;
			v->has_changed = true;
		}
	}
	if (s->before.is_outer_intact && !from->is_outer_intact) {
		s->before.is_outer_intact = false;
		v->has_changed = true;
	}
	v->has_changed |= merge_slots(&s->before, from);
}

static void reach_unknown(struct x86_values *v, size_t i)
{
	const struct x86_state state = {0};

	reach(v, i, &state);
}

/* The function's start: everything is as the caller left it. */
static void reach_start(struct x86_values *v)
{
	struct x86_state state = {.is_outer_intact = true};

	for (int r = 0; r < X86_REGISTERS; r++)
		state.reg[r] = (struct arch_value){.kind = ARCH_VALUE_REGISTER, .number = r};
	state.reg[X86_REGISTER_SP] = (struct arch_value){.kind = ARCH_VALUE_ADDRESS, .number = 0};
	reach(v, 0, &state);
}

/* The step after the padding that begins at @i, if it is aligned; or count. */
static size_t step_after_padding(const struct arch_code *code, const struct x86_values *v, size_t i)
{
	while (i < v->count && v->step[i].is_padding)
		i++;
	return i < v->count && (code->at + v->step[i].offset) % ALIGNED == 0 ? i : v->count;
}

/* Step @i fills the space before a branch target: no path leads through it. */
static bool is_filling(const struct arch_code *code, const struct x86_values *v, size_t i)
{
	size_t behind = step_after_padding(code, v, i);

	return v->step[i].is_padding && behind < v->count && v->step[behind].is_reached;
}

/*
 * Call @i does not return: the code after its padding is reached with another stack pointer, and no
 * code runs with two frame sizes.
 */
static bool is_last_call(const struct arch_code *code, const struct x86_values *v, size_t i)
{
	const struct arch_value *sp = &v->step[i].before.reg[X86_REGISTER_SP];
	size_t behind = step_after_padding(code, v, i + 1);

	if (!v->step[i].is_call || behind == i + 1 || behind == v->count ||
	    !v->step[behind].is_reached)
		return false;
	const struct arch_value *other = &v->step[behind].before.reg[X86_REGISTER_SP];
	return sp->kind == ARCH_VALUE_ADDRESS && other->kind == ARCH_VALUE_ADDRESS &&
	       sp->number != other->number;
}

static void pass(const struct arch_code *code, struct x86_values *v, size_t i)
{
	const struct x86_step *s = &v->step[i];
	struct arch_value value = value_of(s);
	struct x86_state after = s->before;

	for (int r = 0; r < X86_REGISTERS && s->changed >> r; r++) {
		if (s->changed >> r & 1)
			after.reg[r] = unknown;
	}
	if (s->destination == TO_REGISTER)
		after.reg[s->to] = value;
	step_stack(s, value, &after);
	if ((s->flow == FLOW_ON || s->flow == FLOW_BRANCH) && i + 1 < v->count &&
	    !is_last_call(code, v, i))
		reach(v, i + 1, &after);
	if ((s->flow == FLOW_BRANCH || s->flow == FLOW_JUMP) && s->target != X86_NO_TARGET)
		reach(v, s->target, &after);
}

static void carry(const struct arch_code *code, struct x86_values *v)
{
	do {
		v->has_changed = false;
		for (size_t i = 0; i < v->count; i++) {
			if (v->step[i].is_reached)
				pass(code, v, i);
		}
		for (size_t i = 0; i < v->count && !v->has_changed; i++) {
			if (!v->step[i].is_reached && !is_filling(code, v, i))
				reach_unknown(v, i);
		}
	} while (v->has_changed);
}

/* Branches into the middle of an instruction: the code that runs there was not decoded. */
static bool link_targets(struct x86_values *v)
{
	for (size_t i = 0; i < v->count; i++) {
		struct x86_step *s = &v->step[i];
		if (s->target == X86_NO_TARGET)
			continue;
		if (!v->at[s->target])
			return false;
		s->target = v->at[s->target] - 1;
	}
	return true;
}

void x86_64_values_carry(const struct arch_code *code, struct x86_values *v)
{
	if (v->count == 0 || v->has_table || !link_targets(v))
		return;
	reach_start(v);
	for (size_t i = 0; i < code->entry_count; i++) {
		if (!v->at[code->entry[i]])
			return;
		reach_unknown(v, v->at[code->entry[i]] - 1);
	}
	carry(code, v);
	v->is_known = true;
}
