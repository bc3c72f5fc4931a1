/* Variables are addressed relative to the instruction pointer, in all kinds of programs. */
#include "arch/first_load.h"

#include <Zydis/Zydis.h>

static bool is_variable(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base == ZYDIS_REGISTER_RIP;
}

taddr_t arch_find_first_load(const struct arch_code *code, unsigned size)
{
	ZydisMnemonic wanted = size ? ZYDIS_MNEMONIC_MOV : ZYDIS_MNEMONIC_LEA;
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	ZyanU64 address;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return 0;
	for (size_t i = 0; i < code->size; i += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + i, code->size - i,
							 &insn, operand)))
			return 0;
		if (insn.mnemonic == wanted && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    is_variable(&operand[1]) && (!size || operand[1].size == 8 * size) &&
		    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operand[1], code->at + i,
							  &address)))
			return address;
	}
	return 0;
}
