/* The quick decoder says of instructions what Zydis says, or nothing. */
#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64/insn_skim.h"
#include "base/elf_file.h"
#include "tests/unit/rounds.h"

static ZydisDecoder decoder;

static bool is_frame_register(ZydisRegister reg)
{
	ZydisRegister whole =
		ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole == ZYDIS_REGISTER_RSP || whole == ZYDIS_REGISTER_RBP;
}

/* A skimmed instruction does what its kind says. */
static void check_kind(const struct skim *s, const ZydisDecodedInstruction *insn,
		       const ZydisDecodedOperand *operand)
{
	bool is_branch = insn->meta.category == ZYDIS_CATEGORY_COND_BR ||
			 insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR;

	assert_int_equal(s->length, insn->length);
	assert_int_equal(s->kind == SKIM_CALL, insn->mnemonic == ZYDIS_MNEMONIC_CALL);
	assert_int_equal(s->kind == SKIM_JCC || s->kind == SKIM_JMP, is_branch);
	assert_int_equal(s->kind == SKIM_JMP, insn->mnemonic == ZYDIS_MNEMONIC_JMP);
	if (is_branch)
		assert_int_equal(s->to, operand[0].imm.value.s);
	assert_int_not_equal(insn->meta.category, ZYDIS_CATEGORY_RET);
	for (unsigned i = 0; i < insn->operand_count && s->kind != SKIM_CALL; i++)
		if (operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			assert_false(is_frame_register(operand[i].reg.value));
}

static bool decode(const uint8_t *code, size_t size, ZydisDecodedInstruction *insn,
		   ZydisDecodedOperand *operand)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, insn, operand));
}

/* Nine of ten instructions of libc are skimmed. */
static void test_libc(void **state)
{
	struct elf_file *file = NULL;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t count = 0, skimmed = 0;

	(void)state;
	assert_int_equal(elf_file_open(NULL, "/lib/x86_64-linux-gnu/libc.so.6", NULL, &file), 0);
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *g = &file->segment[i];
		uint8_t *code = g->is_exec ? elf_file_read(file, g->offset, g->filesz) : NULL;

		for (size_t at = 0; code && at < g->filesz;) {
			struct skim s = insn_skim(code + at, g->filesz - at);

			if (!decode(code + at, g->filesz - at, &insn, operand)) {
				at++;
				continue;
			}
			count++;
			skimmed += s.kind != SKIM_NONE;
			if (s.kind != SKIM_NONE)
				check_kind(&s, &insn, operand);
			at += insn.length;
		}
		free(code);
	}
	elf_file_release(file);
	print_message("%zu of %zu instructions are skimmed\n", skimmed, count);
	assert_true(count > 100000 && skimmed * 10 > count * 7);
}

/* Where Zydis knows random bytes, it knows the same; nothing beyond the end is used. */
static void test_random(void **state)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	unsigned count = rounds(1000000);

	(void)state;
	srandom(1);
	for (unsigned i = 0; i < count; i++) {
		uint8_t code[16];
		size_t size = 1 + (size_t)random() % sizeof(code);

		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = (uint8_t)random();
		uint8_t *exact = malloc(size);
		memcpy(exact, code, size);
		struct skim s = insn_skim(exact, size);
		bool is_known = decode(exact, size, &insn, operand);

		if (is_known && s.kind != SKIM_NONE)
			check_kind(&s, &insn, operand);
		assert_true(s.length <= size);
		free(exact);
	}
}

static void test_left_to_zydis(void **state)
{
	static const uint8_t code[][8] = {
		{0x55},                         /* push %rbp */
		{0x5d},                         /* pop %rbp */
		{0xc3},                         /* ret */
		{0xcc},                         /* int3 */
		{0x0f, 0x0b},                   /* ud2 */
		{0xc9},                         /* leave */
		{0x90},                         /* nop */
		{0x48, 0x89, 0xe5},             /* mov %rsp, %rbp */
		{0x48, 0x83, 0xec, 0x08},       /* sub $8, %rsp */
		{0x48, 0x8d, 0x65, 0xf8},       /* lea -8(%rbp), %rsp */
		{0x31, 0xed},                   /* xor %ebp, %ebp */
		{0xbd, 1, 0, 0, 0},             /* mov $1, %ebp */
		{0xff, 0xe0},                   /* jmp *%rax */
		{0xff, 0x30},                   /* push (%rax) */
		{0x0f, 0x1f, 0x00},             /* nopl (%rax) */
		{0xf3, 0x0f, 0x1e, 0xfa},       /* endbr64 */
		{0xe2, 0xfe},                   /* loop */
		{0xc5, 0xf8, 0x77},             /* vzeroupper */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		assert_int_equal(insn_skim(code[i], sizeof(code[i])).kind, SKIM_NONE);
	assert_int_equal(insn_skim((const uint8_t *)"\x48\x89\x5d\xf8", 4).length, 4); /* to a variable */
	assert_int_equal(insn_skim((const uint8_t *)"\x48\x89\x5d\xf8", 3).kind, SKIM_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_left_to_zydis),
	};

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
