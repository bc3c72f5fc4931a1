/*
 * Recognizes code that calls a function on another stack than its own: Go's runtime.asmcgocall,
 * which calls C on the stack of the thread. It is written in assembly, changes little from version
 * to version, and no unwind information describes it. What follows the call says how it goes back
 * (Go 1.19; from 1.22 on both numbers are smaller, and the last instruction pops rbp before):
 *
 *	mov 0x38(%rsi),%rsp         the stack of the thread's own g begins there
 *	sub $0x40,%rsp
 *	and $-16,%rsp
 *	mov %rdi,0x30(%rsp)         the goroutine's g
 *	mov 0x8(%rdi),%rdi          the top of its stack
 *	sub %rdx,%rdi
 *	mov %rdi,0x28(%rsp)         how deep it was in that: the stack may be moved meanwhile
 *	...
 *	call *%rax
 *	mov 0x30(%rsp),%rdi
 *	mov 0x8(%rdi),%rsi
 *	sub 0x28(%rsp),%rsi
 *	mov %rdi,%fs:-8             g is the thread's again
 *	mov %rsi,%rsp
 *	mov %eax,0x18(%rsp)
 *	ret
 *
 * A second call, for threads that are on the right stack, has its stack pointer in place of the
 * depth:
 *
 *	call *%rax
 *	mov 0x28(%rsp),%rsi
 *	mov %rsi,%rsp
 *	mov %eax,0x18(%rsp)
 *	ret
 */
#include <Zydis/Zydis.h>
#include <string.h>

#include "arch/unwind_code.h"
#include "arch/x86_64/values.h"
#include "base/types.h"

#define INSTRUCTIONS_MAX 12

/* What the instructions after the call have done so far. */
struct way_back {
	ZydisRegister g, sp;    /* that hold them; ZYDIS_REGISTER_NONE = not yet */
	bool has_top, is_on;    /* sp: is the stack's top; the stack pointer is set */
	ZydisRegister based;    /* holds the constant @tls */
	int64_t tls;
	bool has_returned;
	struct unwind_rule rule;
};

static bool is_memory(const ZydisDecodedOperand *o, ZydisRegister base)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base == base &&
	       o->mem.index == ZYDIS_REGISTER_NONE && o->size == 64 &&
	       o->mem.segment != ZYDIS_REGISTER_FS;
}

/* Stores the displacement of @o to slot @place; false if it is none of words nearby. */
static bool keep(struct way_back *w, enum unwind_switch place, const ZydisDecodedOperand *o)
{
	int64_t at = o->mem.disp.value;

	if (at < 0 || at % 8 != 0 || at / 8 > INT16_MAX)
		return false;
	w->rule.slot[place] = (int16_t)(at / 8);
	return true;
}

/* A store of g to the thread's own word: where that is, if it is known. */
static bool store_g(struct way_back *w, const ZydisDecodedOperand *to)
{
	int64_t at = to->mem.disp.value;

	if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || to->mem.segment != ZYDIS_REGISTER_FS ||
	    to->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	if (to->mem.base != ZYDIS_REGISTER_NONE)
		at = to->mem.base == w->based ? at + w->tls : 0;
	w->rule.own_g = at >= INT32_MIN && at <= INT32_MAX && at % 8 == 0 ? (int32_t)at : 0;
	return true;
}

static bool load(struct way_back *w, ZydisRegister to, const ZydisDecodedOperand *from)
{
	if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		w->based = to;
		w->tls = from->imm.value.s;
		return true;
	}
	if (is_memory(from, ZYDIS_REGISTER_RIP))
		return true; /* the constant is in the global offset table */
	if (is_memory(from, ZYDIS_REGISTER_RSP) && w->g == ZYDIS_REGISTER_NONE) {
		/* g, or, if the stack pointer is set from it, that itself */
		w->g = to;
		return keep(w, SWITCH_G, from);
	}
	if (w->g != ZYDIS_REGISTER_NONE && is_memory(from, w->g) && !w->has_top) {
		w->sp = to;
		w->has_top = true;
		return keep(w, SWITCH_TOP, from);
	}
	return false;
}

/* "mov register -> rsp" */
static bool set_sp(struct way_back *w, const ZydisDecodedOperand *from)
{
	w->is_on = true;
	if (w->rule.kind == RULE_SWITCH)
		return x86_64_is_register(from, w->sp);
	w->rule.kind = RULE_SP_DEREF;
	w->rule.slot[SWITCH_DEPTH] = w->rule.slot[SWITCH_G];
	return !w->has_top && x86_64_is_register(from, w->g);
}

static bool move(struct way_back *w, const ZydisDecodedOperand *to, const ZydisDecodedOperand *from)
{
	if (x86_64_is_register(to, ZYDIS_REGISTER_RSP))
		return !w->is_on && w->g != ZYDIS_REGISTER_NONE && set_sp(w, from);
	if (to->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return !w->is_on && load(w, to->reg.value, from);
	if (w->is_on) /* the result, 4 bytes */
		return x86_64_is_register(from, ZYDIS_REGISTER_EAX) &&
		       to->mem.base == ZYDIS_REGISTER_RSP;
	return x86_64_is_register(from, w->g) && store_g(w, to);
}

/* One instruction after the call; false if it has no part in going back. */
static bool follow(struct way_back *w, const ZydisDecodedInstruction *insn,
		   const ZydisDecodedOperand *operand)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return move(w, &operand[0], &operand[1]);
	case ZYDIS_MNEMONIC_SUB:
		w->rule.kind = RULE_SWITCH;
		return !w->is_on && w->has_top && x86_64_is_register(&operand[0], w->sp) &&
		       is_memory(&operand[1], ZYDIS_REGISTER_RSP) &&
		       keep(w, SWITCH_DEPTH, &operand[1]);
	case ZYDIS_MNEMONIC_POP:
		w->rule.saved = 1;
		w->rule.slot[0] = -2;
		w->rule.cfa_offset += 8;
		return w->is_on && w->rule.cfa_offset == 8 &&
		       x86_64_is_register(&operand[0], ZYDIS_REGISTER_RBP);
	case ZYDIS_MNEMONIC_RET:
		w->rule.cfa_offset += 8;
		w->has_returned = true;
		return w->is_on;
	default:
		return false;
	}
}

/*
 * What @code (of @size bytes, before the call) has done to the stack pointer: "mov disp8(reg),%rsp;
 * sub $imm8,%rsp; and $-16,%rsp". False if it is not there.
 */
static bool find_start(const uint8_t *code, size_t size, struct unwind_rule *rule)
{
	static const uint8_t align[] = {0x48, 0x83, 0xe4, 0xf0}, sub[] = {0x48, 0x83, 0xec};

	for (size_t i = 8; i + sizeof(align) <= size; i++) {
		const uint8_t *at = code + i - 8;

		if (memcmp(code + i, align, sizeof(align)) != 0 ||
		    memcmp(at + 4, sub, sizeof(sub)) != 0 || at[7] % 8 != 0 || at[7] > 0x7f ||
		    at[0] != 0x48 || at[1] != 0x8b || at[2] >> 3 != 0xc || at[3] % 8 != 0 ||
		    at[3] > 0x7f)
			continue;
		rule->slot[SWITCH_START] = at[3] / 8;
		rule->slot[SWITCH_FRAME] = at[7] / 8;
		return true;
	}
	return false;
}

bool arch_returns_to_other_stack(const uint8_t *code, size_t at, size_t size,
				 struct unwind_rule *rule_out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	struct way_back w = {.rule.kind = RULE_NONE};

	if (at > size || !arch_ends_in_call(code, at) ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return false;
	for (size_t i = at, n = 0; !w.has_returned; i += insn.length, n++)
		if (n == INSTRUCTIONS_MAX ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + i, size - i, &insn,
							 operand)) ||
		    !follow(&w, &insn, operand))
			return false;
	if (w.rule.kind == RULE_SWITCH && !find_start(code, at, &w.rule))
		w.rule.own_g = 0;
	rule_out->kind = w.rule.kind;
	rule_out->cfa_offset = w.rule.cfa_offset;
	rule_out->saved = w.rule.saved;
	rule_out->own_g = w.rule.own_g;
	memcpy(rule_out->slot, w.rule.slot, sizeof(rule_out->slot));
	return true;
}
