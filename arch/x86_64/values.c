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
#include "arch/x86_64/values.h"

#include <string.h>

#include "arch/x86_64/x86_64.h"

#define ALIGNED 8u /* minimum alignment of code after padding */

static const struct arch_value unknown = {.kind = ARCH_VALUE_UNKNOWN};

/* -- states -- */

static bool is_same(struct arch_value a, struct arch_value b)
{
	return a.kind == b.kind && a.number == b.number;
}

static void forget_stack(struct x86_state *s)
{
	s->slot_count = 0;
	s->is_outer_intact = false;
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
	    sp->number < -X86_STACK_MAX || sp->number > X86_STACK_MAX)
		forget_stack(after);
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
