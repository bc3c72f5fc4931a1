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
#include <stdlib.h>

#include "arch/x86_64/values.h"
#include "arch/x86_64/x86_64.h"

#define INSTRUCTIONS_MAX 20000u

struct flow {
	const struct arch_code *code;
	size_t start;
	ZydisDecoder decoder;
	uint8_t *seen;         /* by offset */
	size_t *open, opened;  /* offsets that are still to be followed; one for each jump */
	size_t left;           /* instructions */
	void (*fn)(void *ctx, taddr_t at);
	void *ctx;
};

static bool decode(const struct flow *f, size_t at, ZydisDecodedInstruction *out)
{
	return at < f->code->size &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&f->decoder, ZYAN_NULL,
							  f->code->bytes + at,
							  f->code->size - at, out));
}

/* Code after a call that does not return is another function, after padding. */
static bool returns(const struct flow *f, size_t after)
{
	ZydisDecodedInstruction d;

	return decode(f, after, &d) && d.mnemonic != ZYDIS_MNEMONIC_NOP &&
	       d.mnemonic != ZYDIS_MNEMONIC_INT3;
}

/* Whether the instruction after @d at @at is reached from it. */
static bool goes_on(struct flow *f, const ZydisDecodedInstruction *d, size_t at)
{
	bool is_jump = d->mnemonic == ZYDIS_MNEMONIC_JMP;
	size_t target = d->raw.imm[0].is_relative ? x86_64_target(d, at) : f->code->size;

	if (d->meta.category == ZYDIS_CATEGORY_CALL)
		return returns(f, at + d->length);
	if (is_jump && target == f->start)
		f->fn(f->ctx, f->code->at + at);
	else if (target < f->code->size)
		f->open[f->opened++] = target;
	return !is_jump && d->meta.category != ZYDIS_CATEGORY_RET &&
	       d->mnemonic != ZYDIS_MNEMONIC_UD2 && d->mnemonic != ZYDIS_MNEMONIC_HLT &&
	       d->mnemonic != ZYDIS_MNEMONIC_INT3;
}

static void follow(struct flow *f, size_t at)
{
	ZydisDecodedInstruction d;

	while (at < f->code->size && !f->seen[at] && f->left > 0 && decode(f, at, &d)) {
		f->seen[at] = 1;
		f->left--;
		if (!goes_on(f, &d, at))
			return;
		at += d.length;
	}
}

void x86_64_each_again(const struct arch_code *code, size_t start,
		       void (*fn)(void *ctx, taddr_t at), void *ctx)
{
	struct flow f = {.code = code, .start = start, .left = INSTRUCTIONS_MAX, .fn = fn,
			 .ctx = ctx};

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	f.seen = calloc(code->size + 1, 1);
	f.open = calloc(INSTRUCTIONS_MAX + 1, sizeof(*f.open));
	if (f.seen && f.open) {
		f.open[f.opened++] = start;
		while (f.opened > 0)
			follow(&f, f.open[--f.opened]);
	}
	free(f.open);
	free(f.seen);
}
