/*
 * Whether a function uses the part of the stack above its return address, where arguments after the
 * sixth are, and those of `...`: a stub or a pad calls the function with another return address
 * below the caller's, so these would be at another place.
 *
 *	mov 0x28(%rsp), %rax   after pushes of 32 bytes: the word above the return address
 *	lea 0x8(%rsp), %rax    the address of these arguments, at the function's start
 *	jmp other              with the stack as at the start: the other function may use them
 */
#include "arch/x86_64/values.h"
#include "arch/x86_64/x86_64.h"

/* The register with @name's value, in the order of struct x86_state; -1: none of them. */
static int number_of(ZydisRegister name)
{
	return name >= ZYDIS_REGISTER_RAX && name <= ZYDIS_REGISTER_R15 ?
		       (int)(name - ZYDIS_REGISTER_RAX) :
		       -1;
}

/* Values before the last jump through a table: those of the code that it leads to. */
static const struct x86_state *before_table(const struct x86_values *v)
{
	for (size_t i = v->count; i-- > 0;) {
		const struct x86_step *s = &v->step[i];

		if (s->flow == FLOW_ANYWHERE && s->is_reached &&
		    s->before.reg[X86_REGISTER_SP].kind == ARCH_VALUE_ADDRESS)
			return &s->before;
	}
	return NULL;
}

/* Whether @o is memory above the return address, or its address. */
static bool is_above(const ZydisDecodedOperand *o, const struct x86_state *state)
{
	int base = o->type == ZYDIS_OPERAND_TYPE_MEMORY ? number_of(o->mem.base) : -1;

	if (base < 0 || state->reg[base].kind != ARCH_VALUE_ADDRESS)
		return false;
	int64_t at = state->reg[base].number + o->mem.disp.value;

	return (at >= X86_WORD || at + o->size / 8 > X86_WORD) &&
	       o->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

/* Adjusts the stack pointer itself. */
static bool is_adjustment(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand)
{
	return d->mnemonic == ZYDIS_MNEMONIC_LEA &&
	       operand[0].reg.value == ZYDIS_REGISTER_RSP;
}

static bool uses_above(const struct arch_code *code, const struct x86_step *s,
		       const struct x86_state *state)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + s->offset,
						 code->size - s->offset, &d, operand)))
		return false;
	if (is_adjustment(&d, operand))
		return false;
	for (size_t i = 0; i < d.operand_count; i++) {
		if (is_above(&operand[i], state))
			return true;
	}
	return false;
}

static bool is_at_start(const struct x86_state *state)
{
	const struct arch_value *sp = &state->reg[X86_REGISTER_SP];

	return sp->kind == ARCH_VALUE_ADDRESS && sp->number == 0;
}

enum stack_use { USES_NONE, USES_SOME, UNKNOWN };

static enum stack_use examine(const struct arch_code *code, taddr_t *jumps_to_out)
{
	struct x86_values v;
	bool uses = false;

	if (x86_64_values_read(code, &v) != 0)
		return UNKNOWN;
	v.has_table = false;
	x86_64_values_carry(code, &v);
	bool is_known = v.is_known;
	const struct x86_state *table = before_table(&v);

	for (size_t i = 0; i < v.count && is_known && !uses; i++) {
		const struct x86_step *s = &v.step[i];
		bool has_sp = s->before.reg[X86_REGISTER_SP].kind == ARCH_VALUE_ADDRESS;

		uses = uses_above(code, s, has_sp || !table ? &s->before : table);
		if (has_sp && s->flow == FLOW_JUMP && s->target == X86_NO_TARGET &&
		    is_at_start(&s->before))
			*jumps_to_out = s->leads_to;
	}
	x86_64_values_deinit(&v);
	return !is_known ? UNKNOWN : uses ? USES_SOME : USES_NONE;
}

/* The end of what is reached from the start by direct branches forwards. */
static size_t find_end(const struct arch_code *code)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t furthest = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < code->size;) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + i,
							 code->size - i, &d, operand)))
			return i;
		uint64_t target = x86_64_target(&d, i);
		enum x86_flow flow = x86_64_flow(&d, operand);

		if ((flow == FLOW_BRANCH || flow == FLOW_JUMP) && target < code->size &&
		    target > furthest)
			furthest = target;
		i += d.length;
		if (flow != FLOW_ON && flow != FLOW_BRANCH && furthest < i)
			return i;
	}
	return code->size;
}

/*
 * Code that follows the function, unless the part that is reached ends before it, may branch to the
 * start with any stack; code behind a jump through a table is in the whole only.
 */
bool x86_64_uses_stack_arguments(const struct arch_code *code, taddr_t *jumps_to_out)
{
	struct arch_code part = *code;
	taddr_t unused;

	*jumps_to_out = 0;
	part.size = find_end(code);
	return examine(&part, jumps_to_out) != USES_NONE || examine(code, &unused) == USES_SOME;
}
