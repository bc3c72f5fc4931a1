/*
 * Facts about single instructions, from which functions without symbols are recognized: branches,
 * constants and addresses, products, stores of bytes. Decodes from the start to the end; after
 * bytes that are no instruction the next start soon falls on one.
 */
#include "arch/x86_64/values.h"
#include "arch/x86_64/x86_64.h"

struct fact_reader {
	void (*fn)(void *ctx, const struct arch_fact *fact);
	void *ctx;
	taddr_t at;
};

static void report(const struct fact_reader *r, enum arch_fact_kind kind, uint64_t value)
{
	r->fn(r->ctx, &(struct arch_fact){.kind = (uint8_t)kind, .at = r->at, .value = value});
}

/* mul and imul of a register or a word of memory, not by a constant. */
static bool is_product(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o)
{
	if (d->mnemonic != ZYDIS_MNEMONIC_MUL && d->mnemonic != ZYDIS_MNEMONIC_IMUL)
		return false;
	for (size_t i = 0; i < d->operand_count_visible; i++) {
		if (o[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
	}
	return d->operand_count_visible > 0 && o[0].size == 64;
}

static bool is_byte_store(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o)
{
	return d->mnemonic == ZYDIS_MNEMONIC_MOV && d->operand_count_visible == 2 &&
	       o[0].type == ZYDIS_OPERAND_TYPE_MEMORY && o[0].size == 8 &&
	       o[0].mem.base != ZYDIS_REGISTER_RIP && o[0].mem.disp.has_displacement &&
	       o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static bool is_stop(const ZydisDecodedInstruction *d)
{
	return d->mnemonic == ZYDIS_MNEMONIC_HLT || d->mnemonic == ZYDIS_MNEMONIC_UD2;
}

static void report_operands(const struct fact_reader *r, const ZydisDecodedInstruction *d,
			    const ZydisDecodedOperand *operand)
{
	bool has_any = false;

	for (size_t i = 0; i < d->operand_count_visible; i++) {
		const ZydisDecodedOperand *o = &operand[i];
		bool is_near = o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			       o->mem.base == ZYDIS_REGISTER_RIP;

		if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			report(r, ARCH_FACT_VALUE, o->imm.value.u);
		else if (is_near)
			report(r, ARCH_FACT_VALUE,
			       r->at + d->length + (taddr_t)o->mem.disp.value);
		has_any |= is_near || o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	}
	if (!has_any)
		report(r, ARCH_FACT_OTHER, 0);
}

static void report_instruction(const struct fact_reader *r, const ZydisDecodedInstruction *d,
			       const ZydisDecodedOperand *operand)
{
	if (d->raw.imm[0].is_relative) {
		bool is_call = d->meta.category == ZYDIS_CATEGORY_CALL;
		bool is_jump = d->meta.category == ZYDIS_CATEGORY_UNCOND_BR;

		report(r, is_call ? ARCH_FACT_CALL : is_jump ? ARCH_FACT_JUMP : ARCH_FACT_BRANCH,
		       r->at + x86_64_target(d, 0));
	} else if (x86_64_is_padding(d) || d->mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		report(r, ARCH_FACT_PADDING, 0);
	} else if (is_stop(d)) {
		report(r, ARCH_FACT_STOP, 0);
	} else if (is_product(d, operand)) {
		report(r, ARCH_FACT_PRODUCT, 0);
	} else if (is_byte_store(d, operand)) {
		const struct arch_fact store = {.kind = ARCH_FACT_STORE, .at = r->at,
						.offset = (int32_t)operand[0].mem.disp.value,
						.value = operand[1].imm.value.u & 0xff};
		r->fn(r->ctx, &store);
	} else {
		report_operands(r, d, operand);
	}
}

void x86_64_each_fact(const struct arch_code *code,
		      void (*fn)(void *ctx, const struct arch_fact *fact), void *ctx)
{
	struct fact_reader r = {.fn = fn, .ctx = ctx};
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t length, end = code->size;

	while (end > 0 && code->bytes[end - 1] == 0) /* with which linkers fill sections */
		end--;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < end; i += length) {
		length = 1;
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + i, code->size - i,
							 &d, operand)))
			continue;
		length = d.length;
		r.at = code->at + i;
		report_instruction(&r, &d, operand);
	}
}
