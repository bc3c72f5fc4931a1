/*
 * What code refers to. Jumps by which a function begins again are found by following it from its
 * start. References to a range of addresses are searched by their bytes, which is quick and may be
 * wrong; then the few functions that may contain one are decoded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/values.h"
#include "arch/x86_64/x86_64.h"

/*
 * Finds the jumps by which a function begins again: follows direct jumps, but no calls, from its
 * start.
 *
 *	start:   test ...
 *	         jz       1f
 *	         ret
 *	1:       jmp      elsewhere
 *	elsewhere: ...
 *	         jmp      start       <-
 */

#define INSTRUCTIONS_MAX 20000u

struct code_flow {
	const struct arch_code *code;
	size_t start;
	ZydisDecoder decoder;
	uint8_t *seen;         /* by offset */
	size_t *open, opened;  /* offsets that are still to be followed; one for each jump */
	size_t left;           /* instructions */
	bool leaves;           /* what is not in @code may be reached */
	void (*fn)(void *ctx, taddr_t at);
	void *ctx;
};

static bool decode(struct code_flow *f, size_t at, ZydisDecodedInstruction *out)
{
	if (at < f->code->size &&
	    ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&f->decoder, ZYAN_NULL, f->code->bytes + at,
						       f->code->size - at, out)))
		return true;
	f->leaves |= at >= f->code->size || f->code->size - at < ZYDIS_MAX_INSTRUCTION_LENGTH;
	return false;
}

/* Code after a call that does not return is another function, after padding. */
static bool returns(struct code_flow *f, size_t after)
{
	ZydisDecodedInstruction d;

	return decode(f, after, &d) && d.mnemonic != ZYDIS_MNEMONIC_NOP &&
	       d.mnemonic != ZYDIS_MNEMONIC_INT3;
}

/* Whether the instruction after @d at @at is reached from it. */
static bool goes_on(struct code_flow *f, const ZydisDecodedInstruction *d, size_t at)
{
	bool is_jump = d->mnemonic == ZYDIS_MNEMONIC_JMP;
	size_t target = d->raw.imm[0].is_relative ? x86_64_target(d, at) : f->code->size;

	if (d->meta.category == ZYDIS_CATEGORY_CALL)
		return returns(f, at + d->length);
	if (is_jump && target == f->start)
		f->fn(f->ctx, f->code->at + at);
	else if (target < f->code->size)
		f->open[f->opened++] = target;
	else
		f->leaves |= d->raw.imm[0].is_relative;
	return !is_jump && d->meta.category != ZYDIS_CATEGORY_RET &&
	       d->mnemonic != ZYDIS_MNEMONIC_UD2 && d->mnemonic != ZYDIS_MNEMONIC_HLT &&
	       d->mnemonic != ZYDIS_MNEMONIC_INT3;
}

static void follow(struct code_flow *f, size_t at)
{
	ZydisDecodedInstruction d;

	while ((at >= f->code->size || !f->seen[at]) && f->left > 0 && decode(f, at, &d)) {
		f->seen[at] = 1;
		f->left--;
		if (!goes_on(f, &d, at))
			return;
		at += d.length;
	}
}

bool x86_64_each_again(const struct arch_code *code, size_t start,
		       void (*fn)(void *ctx, taddr_t at), void *ctx)
{
	struct code_flow f = {.code = code, .start = start, .fn = fn, .ctx = ctx,
			 .left = MIN(INSTRUCTIONS_MAX, code->size)};

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	f.seen = calloc(code->size + 1, 1);
	f.open = calloc(f.left + 1, sizeof(*f.open));
	if (f.seen && f.open) {
		f.open[f.opened++] = start;
		while (f.opened > 0)
			follow(&f, f.open[--f.opened]);
	}
	free(f.open);
	free(f.seen);
	return !f.leaves;
}

/*
 * Finds references in code to a range of addresses: branches, pc-relative operands, and constants
 * that may be addresses, in code at its link address. First the bytes are searched, which is quick;
 * then the few functions that may contain a reference are decoded.
 *
 *	e8 rel32         call           target = address of the byte after rel32 + rel32
 *	eb rel8          jmp            likewise
 *	48 3b 05 disp32  cmp disp(%rip) with an immediate: the distance counts from after it
 *	bf imm32         mov $imm, %edi
 */

#define WORD_SIZE 4u
#define IMMEDIATE_MAX 4u /* maximum immediate after a displacement, bytes */
#define SHORT_REACH 130u /* maximum distance of a short branch, bytes */
#define BLOCK 64u        /* bytes examined together */

/* -- by bytes -- */

struct hints {
	const struct arch_code *code;
	uint32_t start, size; /* the range's lower half */
	void (*fn)(void *ctx, taddr_t at);
	void *ctx;
};

static bool is_hint(const struct hints *h, size_t offset)
{
	uint32_t word, behind = (uint32_t)(h->code->at + offset) + WORD_SIZE;

	memcpy(&word, h->code->bytes + offset, sizeof(word));
	return (word - h->start < h->size) |
	       (behind + word - (h->start - IMMEDIATE_MAX) < h->size + IMMEDIATE_MAX);
}

/* Vector instructions skip blocks without any candidate, which are most. */
static bool has_hint(const struct hints *h, size_t offset)
{
	bool has_any = false;

	for (size_t n = 0; n < BLOCK; n++)
		has_any |= is_hint(h, offset + n);
	return has_any;
}

static void hint_words(const struct hints *h)
{
	size_t count = h->code->size < WORD_SIZE ? 0 : h->code->size - WORD_SIZE + 1;

	for (size_t i = 0; i < count; i += BLOCK) {
		if (count - i >= BLOCK && !has_hint(h, i))
			continue;
		for (size_t n = i; n < i + BLOCK && n < count; n++) {
			if (is_hint(h, n))
				h->fn(h->ctx, h->code->at + n);
		}
	}
}

/* Short branches: only near the range. */
static void hint_short(const struct hints *h, taddr_t start, taddr_t end)
{
	const struct arch_code *c = h->code;
	taddr_t from = start - SHORT_REACH > start ? 0 : start - SHORT_REACH;
	size_t i = from > c->at ? from - c->at : 0;

	for (; i < c->size && c->at + i < end + SHORT_REACH; i++) {
		taddr_t target = c->at + i + 1 + (taddr_t)(int64_t)(int8_t)c->bytes[i];
		if (target - start < end - start)
			h->fn(h->ctx, c->at + i);
	}
}

bool x86_64_has_call(const struct arch_code *code, taddr_t target)
{
	for (size_t i = 0; i + X86_JUMP_SIZE <= code->size; i++) {
		int32_t distance;

		if (code->bytes[i] != 0xe8)
			continue;
		memcpy(&distance, &code->bytes[i + 1], sizeof(distance));
		if (code->at + i + X86_JUMP_SIZE + (taddr_t)(int64_t)distance == target)
			return true;
	}
	return false;
}

void x86_64_each_hint(const struct arch_code *code, taddr_t start, taddr_t end,
		      void (*fn)(void *ctx, taddr_t at), void *ctx)
{
	const struct hints h = {.code = code, .start = (uint32_t)start,
				.size = (uint32_t)(end - start), .fn = fn, .ctx = ctx};

	hint_words(&h);
	hint_short(&h, start, end);
}

/* -- by instructions -- */

struct address_range {
	taddr_t start, end;
};

static int kind_of(const ZydisDecodedInstruction *d)
{
	return d->mnemonic == ZYDIS_MNEMONIC_CMP ? ARCH_REFERS_COMPARE : ARCH_REFERS_OTHER;
}

static bool may_be_address(uint64_t value, const struct address_range *r)
{
	return (uint32_t)value - (uint32_t)r->start < (uint32_t)(r->end - r->start);
}

static int operand_refers(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o,
			  taddr_t at, const struct address_range *r)
{
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return may_be_address(o->imm.value.u, r) ? kind_of(d) : 0;
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return 0;
	if (o->mem.base != ZYDIS_REGISTER_RIP && o->mem.base != ZYDIS_REGISTER_EIP)
		return may_be_address((uint64_t)o->mem.disp.value, r) ? ARCH_REFERS_OTHER : 0;
	taddr_t first = at + d->length + (taddr_t)o->mem.disp.value;
	taddr_t size = o->size >= 8 ? o->size / 8 : 1;
	return first < r->end && first + size > r->start ? kind_of(d) : 0;
}

static int instruction_refers(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand,
			      taddr_t at, const struct address_range *r)
{
	int found = 0;

	if (d->raw.imm[0].is_relative) {
		taddr_t target = at + x86_64_target(d, 0);
		bool is_own = at - r->start < r->end - r->start;

		if (target == r->start)
			return ARCH_REFERS_BRANCH;
		return target - r->start < r->end - r->start && !is_own ? ARCH_REFERS_OTHER : 0;
	}
	for (size_t i = 0; i < d->operand_count_visible; i++)
		found |= operand_refers(d, &operand[i], at, r);
	return found;
}

/*
 * Whether the code after @d can be reached from it. A call at the end of a function does not
 * return.
 */
static bool runs_on(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operand)
{
	enum x86_flow flow = x86_64_flow(d, operand);

	return (flow == FLOW_ON || flow == FLOW_BRANCH) &&
	       d->meta.category != ZYDIS_CATEGORY_CALL;
}

int x86_64_refers(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end)
{
	const struct address_range r = {start, end};
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	bool is_open = true; /* nothing is known about the code before */
	int found = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < code->size && !x86_64_is_filled(code, i); i += d.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + i, code->size - i,
							 &d, operand)))
			return -EILSEQ;
		if (code->at + i >= from)
			found |= instruction_refers(&d, operand, code->at + i, &r);
		if (!x86_64_is_padding(&d))
			is_open = runs_on(&d, operand);
	}
	if (is_open && code->at + code->size == start)
		found |= ARCH_REFERS_OTHER;
	return found;
}
