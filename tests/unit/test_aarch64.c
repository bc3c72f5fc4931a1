/*
 * aarch64's moved instructions and stubs, on any CPU: compared with what the assembler makes of
 * their meaning; on aarch64 also executed, where they must compute what the originals compute. And
 * the operands of its probes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arch/arch.h"

#if !defined(__aarch64__)
#include "arch/aarch64/operand.c"
#include "arch/aarch64/relocate.c"
#else
#include <errno.h>

#include "arch/aarch64/aarch64.h"

#include <sys/mman.h>
#endif

#define FROM 0x401000u
#define TO 0x500000u

/* b @to at @at */
static uint32_t b(taddr_t at, taddr_t to)
{
	return 0x14000000u | ((uint32_t)((int64_t)(to - at) / 4) & 0x3ffffffu);
}

static int move(uint32_t insn, taddr_t from, bool is_inside, uint8_t *out, struct arch_move *m)
{
	static uint8_t code[A64_SIZE];

	a64_store(code, insn);
	*m = (struct arch_move){.code = code, .code_size = sizeof(code), .from = from, .to = TO,
				.min_bytes = 1, .is_inside = is_inside, .out = out, .out_size = 64};
	return aarch64_relocate(m);
}

/* @insn at FROM becomes the @count words @want, and a branch back unless @is_last. */
static void check_move(uint32_t insn, const uint32_t *want, size_t count, bool is_last)
{
	uint8_t out[64];
	struct arch_move m;

	assert_int_equal(move(insn, FROM, false, out, &m), 0);
	assert_int_equal(m.moved, 4);
	assert_int_equal(m.size, 4 * (count + !is_last));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(a64_load(out + 4 * i), want[i]);
	if (!is_last)
		assert_int_equal(a64_load(out + 4 * count), b(TO + 4 * count, FROM + 4));
}

#define MOVE(insn, is_last, ...)                                                        \
	do {                                                                            \
		const uint32_t want[] = {__VA_ARGS__};                                  \
		check_move(insn, want, ARRAY_SIZE(want), is_last);                      \
	} while (0)

static void test_moves(void **state)
{
	const taddr_t near = FROM + 0x40;

	MOVE(0xa9be7bfd, false, 0xa9be7bfd);       /* stp x29, x30, [sp, #-32]! */
	MOVE(0xd503233f, false, 0xd503233f);       /* paciasp */
	MOVE(0x14000400, true, b(TO, FROM + 0x1000));
	/* bl: mov x30, #0x401004; b */
	MOVE(0x94000400, true, 0xd282009e, 0xf2a0081e, b(TO + 8, FROM + 0x1000));
	MOVE(0xb4000200, false, 0xb4000040, b(TO + 4, FROM + 4), b(TO + 8, near)); /* cbz x0 */
	MOVE(0x54000200, false, 0x54000040, b(TO + 4, FROM + 4), b(TO + 8, near)); /* b.eq */
	MOVE(0x36180201, false, 0x36180041, b(TO + 4, FROM + 4), b(TO + 8, near)); /* tbz x1, #3 */
	MOVE(0xb0000022, false, 0xd28c0002, 0xf2a00802);             /* adrp x2, .+0x5000 */
	MOVE(0x100000a3, false, 0xd2820283, 0xf2a00803);             /* adr x3, .+0x14 */
	MOVE(0x58000104, false, 0xd2820404, 0xf2a00804, 0xf9400084); /* ldr x4, .+0x20 */
	MOVE(0x98000105, false, 0xd2820405, 0xf2a00805, 0xb98000a5); /* ldrsw x5, .+0x20 */
}

static void test_refused(void **state)
{
	uint8_t out[64];
	struct arch_move m;

	assert_int_equal(move(0x9c000100, FROM, false, out, &m), -ENOTSUP); /* ldr q0, literal */
	assert_int_equal(move(0xd63f0060, FROM, false, out, &m), -ENOTSUP); /* blr x3 */
	assert_int_equal(move(0, FROM, false, out, &m), -ENOTSUP);          /* udf #0 */
	assert_int_equal(move(A64_NOP, FROM + 2, false, out, &m), -ENOTSUP);
	/* too far for b: by x16, but not inside of a function, where it may be in use */
	assert_int_equal(move(0x14000400, TO + (UINT64_C(1) << 32), true, out, &m), -ENOTSUP);
	assert_int_equal(move(0x14000400, TO + (UINT64_C(1) << 32), false, out, &m), 0);
	assert_int_equal(a64_load(out + m.size - 4), 0xd61f0200); /* br x16 */
}

static void test_stub(void **state)
{
	const uint32_t code[] = {0xd503233f, 0xa9be7bfd};
	uint8_t bytes[8], out[96];
	struct arch_stub stub;
	struct arch_move m = {.code = bytes, .code_size = sizeof(bytes), .from = FROM, .to = TO,
			      .out = out, .out_size = sizeof(out)};

	a64_store(bytes, code[0]);
	a64_store(bytes + 4, code[1]);
	assert_int_equal(aarch64_make_stub(&m, &stub), 0);
	assert_int_equal(stub.patch, FROM);
	assert_int_equal(stub.moved, 4);
	assert_int_equal(a64_load(out + (stub.trap - TO)), A64_BRK);
	assert_int_equal(a64_load(out + (stub.jump - TO)), code[0]);
	assert_int_equal(a64_load(out + (stub.jump - TO) + 4), b(stub.jump + 4, FROM + 4));
	/* the call leads to `jump`, and returns to the trap */
	taddr_t to;
	assert_int_equal(a64_decode(a64_load(out + 8), TO + 8, &to), A64_IS_CALL);
	assert_int_equal(to, stub.jump);
	assert_int_equal(a64_decode(a64_load(out), TO, &to), A64_IS_ADDRESS);
	assert_int_equal(to, stub.trap);
	m.out_size = 28;
	assert_int_equal(aarch64_make_stub(&m, &stub), -ENOTSUP);
	m.code_size = 3;
	m.out_size = sizeof(out);
	assert_int_equal(aarch64_make_stub(&m, &stub), -ENOTSUP);
}

static void test_syscall_stub(void **state)
{
	uint8_t out[8];

	assert_int_equal(aarch64_make_syscall_stub(FROM, TO, out, sizeof(out)), 8);
	assert_int_equal(a64_load(out), A64_SVC);
	assert_int_equal(a64_load(out + 4), b(TO + 4, FROM + 4));
	assert_int_equal(aarch64_make_syscall_stub(FROM, TO, out, 7), 0);
	assert_int_equal(aarch64_make_syscall_stub(FROM, FROM + (1u << 28), out, 8), 0);
}

static void check_operand(const char *text, struct arch_operand want)
{
	struct arch_operand o = {0};

	assert_int_equal(aarch64_parse_operand(text, strlen(text), &o), 0);
	assert_int_equal(o.kind, want.kind);
	assert_int_equal(o.size, want.size);
	assert_int_equal(o.is_signed, want.is_signed);
	assert_int_equal(o.value, want.value);
	if (o.kind == OPERAND_CONSTANT)
		return;
	assert_int_equal(o.base, want.base);
	if (o.kind == OPERAND_MEMORY) {
		assert_int_equal(o.index, want.index);
		assert_int_equal(o.scale, want.scale);
	}
}

#define OPERAND(text, ...) check_operand(text, (struct arch_operand){__VA_ARGS__})

static void test_operands(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} bad[] = {
		{"", -EINVAL},           {"-9223372036854775808@x0", -EINVAL},
		{"3@x0", -EINVAL},       {"8@", -ENOTSUP},
		{"8@v0", -ENOTSUP},      {"8@x31", -ENOTSUP},      {"8@[x0", -EINVAL},
		{"8@x0]", -EINVAL},      {"8@[x0, w1]", -ENOTSUP}, {"8@[x0, 8]!", -EINVAL},
		{"8@[w0]", -ENOTSUP},    {"8@symbol", -ENOTSUP},   {"8@[x0, x1, uxtw]", -ENOTSUP},
		{"8@[x0, #]", -EINVAL},  {"8@-", -EINVAL},         {"8@[x0, x1, lsl 4]", -ENOTSUP},
		{"8@99999999999999999999", -EINVAL},
	};

	OPERAND("8@x0", .kind = OPERAND_REGISTER, .size = 8, .base = 0);
	OPERAND("-4@w30", .kind = OPERAND_REGISTER, .size = 4, .is_signed = true, .base = 30);
	OPERAND("4@x3", .kind = OPERAND_REGISTER, .size = 4, .base = 3);
	OPERAND("8@w3", .kind = OPERAND_REGISTER, .size = 4, .base = 3);
	OPERAND("x19", .kind = OPERAND_REGISTER, .size = 8, .base = 19);
	OPERAND("8@sp", .kind = OPERAND_REGISTER, .size = 8, .base = A64_SP);
	OPERAND("8@5", .kind = OPERAND_CONSTANT, .size = 8, .value = 5);
	OPERAND("-4@-1", .kind = OPERAND_CONSTANT, .size = 4, .is_signed = true, .value = -1);
	OPERAND("8@#7", .kind = OPERAND_CONSTANT, .size = 8, .value = 7);
	OPERAND("4@wzr", .kind = OPERAND_CONSTANT, .size = 4);
	OPERAND("8@[x0]", .kind = OPERAND_MEMORY, .size = 8, .base = 0, .index = ARCH_NO_REG,
		.scale = 1);
	OPERAND("8@[sp, 16]", .kind = OPERAND_MEMORY, .size = 8, .base = A64_SP,
		.index = ARCH_NO_REG, .scale = 1, .value = 16);
	OPERAND("-2@[x29,#-24]", .kind = OPERAND_MEMORY, .size = 2, .is_signed = true,
		.base = 29, .index = ARCH_NO_REG, .scale = 1, .value = -24);
	OPERAND("8@[x1, x2]", .kind = OPERAND_MEMORY, .size = 8, .base = 1, .index = 2, .scale = 1);
	OPERAND("8@[x1, x2, lsl 3]", .kind = OPERAND_MEMORY, .size = 8, .base = 1, .index = 2,
		.scale = 8);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct arch_operand o;

		assert_int_equal(aarch64_parse_operand(bad[i].text, strlen(bad[i].text), &o),
				 bad[i].rc);
	}
}

#if defined(__aarch64__)

#define STUB_ROOM 96

typedef uint64_t (*function)(uint64_t a, uint64_t b);

/*
 * Functions that differ in their first instruction; the label NAME_end is after each. All are
 * global: else the compiler would take the address of a local symbol from the GOT.
 */
#define ASM_FUNCTION(name, body)                                                       \
	__asm__(".pushsection .text\n.balign 16\n.globl " #name ", " #name "_end\n" #name ":\n" body \
		"\n" #name "_end:\n nop\n.popsection\n");                             \
	uint64_t name(uint64_t a, uint64_t b);                                         \
	extern const uint8_t name##_end[]

/* Calls @fn with flags that depend on the arguments, and its return address in x9, too. */
uint64_t enter(function fn, uint64_t a, uint64_t b);
__asm__(".pushsection .text\n.balign 16\n.globl enter\nenter:\n mov x16, x0\n mov x0, x1\n mov x1, x2\n cmp x0, x1\n"
	" mov x9, x30\n br x16\n.popsection\n");

uint64_t table_word = 77;

#define EITHER " add x0, x1, #5\n ret\n1: add x0, x1, #9\n ret"
ASM_FUNCTION(f_frame, "stp x29, x30, [sp, #-16]!\n add x0, x0, x1\n ldp x29, x30, [sp], #16\n ret");
ASM_FUNCTION(f_signed, "hint #25\n stp x29, x30, [sp, #-16]!\n add x0, x0, x1\n"
		       " ldp x29, x30, [sp], #16\n hint #29\n ret");
ASM_FUNCTION(f_landing, "hint #34\n add x0, x0, x1\n ret");
ASM_FUNCTION(f_branch, "b f_frame");
ASM_FUNCTION(f_zero, "cbz x0, 1f\n" EITHER);
ASM_FUNCTION(f_not_zero, "cbnz w1, 1f\n" EITHER);
ASM_FUNCTION(f_bit, "tbz x0, #1, 1f\n" EITHER);
ASM_FUNCTION(f_high_bit, "tbnz x0, #40, 1f\n" EITHER);
ASM_FUNCTION(f_less, "b.lo 1f\n" EITHER);
ASM_FUNCTION(f_address, "adr x2, 1f\n ldr x2, [x2]\n add x0, x0, x2\n ret\n .balign 8\n1: .quad 78");
ASM_FUNCTION(f_page, "adrp x2, table_word\n ldr x2, [x2, :lo12:table_word]\n add x0, x0, x2\n ret");
ASM_FUNCTION(f_literal, "ldr x2, 1f\n add x0, x0, x2\n ret\n .balign 8\n1: .quad 0x123456789");
ASM_FUNCTION(f_signed_literal, "ldrsw x2, 1f\n add x0, x0, x2\n ret\n1: .long -7");
ASM_FUNCTION(f_short_literal, "ldr w2, 1f\n add x0, x0, x2\n ret\n1: .long -7");
ASM_FUNCTION(f_call, "bl 1f\n add x0, x0, #1\n ret x9\n1: add x0, x0, x1\n ret");
ASM_FUNCTION(f_loop, "sub x1, x1, #1\n add x0, x0, #2\n cbnz x1, f_loop\n ret");

static const struct known {
	const char *name;
	function fn;
	const uint8_t *end;
	bool is_alone; /* refers to nothing outside, so that a copy does the same */
} known[] = {
#define KNOWN(name, is_alone) {#name, name, name##_end, is_alone}
	KNOWN(f_frame, true),          KNOWN(f_signed, true),        KNOWN(f_landing, true),
	KNOWN(f_branch, false),        KNOWN(f_zero, true),          KNOWN(f_not_zero, true),
	KNOWN(f_bit, true),            KNOWN(f_high_bit, true),      KNOWN(f_less, true),
	KNOWN(f_address, true),        KNOWN(f_page, false),         KNOWN(f_literal, true),
	KNOWN(f_signed_literal, true), KNOWN(f_short_literal, true), KNOWN(f_call, true),
	KNOWN(f_loop, true),
#undef KNOWN
};

/* A page that can be written and run, which a branch of this program's text reaches. */
static uint8_t *code_page(void)
{
	uintptr_t text = (uintptr_t)f_frame;

	for (uintptr_t at = ROUND_DOWN(text, 0x10000) + 0x1000000; at < text + 0x7000000;
	     at += 0x1000000) {
		void *p = mmap((void *)at, 0x10000, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (p != MAP_FAILED)
			return p;
	}
	fail_msg("no room near the text");
	return NULL;
}

static void compare(const struct known *k, taddr_t moved)
{
	static const uint64_t values[] = {0, 1, 2, 7, 1ull << 40, ~0ull};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (uint64_t second = 1; second < 9; second++)
			if (enter(k->fn, values[i], second) !=
			    enter((function)(uintptr_t)moved, values[i], second)) // NOLINT
				fail_msg("%s(%#llx, %llu) differs", k->name,
					 (unsigned long long)values[i], (unsigned long long)second);
}

static void make_stub(const struct known *k, const uint8_t *code, uint8_t *at, struct arch_stub *stub)
{
	struct arch_move m = {.code = code, .code_size = (size_t)(k->end - (const uint8_t *)k->fn),
			      .from = (taddr_t)code, .to = (taddr_t)at, .out = at,
			      .out_size = STUB_ROOM};

	if (aarch64_make_stub(&m, stub) != 0)
		fail_msg("%s: %s", k->name, m.why);
	assert_true(stub->size <= STUB_ROOM);
	assert_int_equal(stub->moved, A64_SIZE);
	assert_int_equal(stub->patch, (taddr_t)code);
	assert_int_equal(stub->pushes_return, k->fn == f_call);
}

static void flush(uint8_t *at, size_t size)
{
	__builtin___clear_cache((char *)at, (char *)at + size);
}

static void test_stub_runs(void **state)
{
	uint8_t *page = code_page();

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct known *k = &known[i];
		uint8_t *at = page + i * STUB_ROOM;
		struct arch_stub stub;

		make_stub(k, (const uint8_t *)(uintptr_t)k->fn, at, &stub);
		assert_int_equal(a64_load(at + (stub.trap - stub.call)), A64_BRK);
		a64_store(at + (stub.trap - stub.call), A64_NOP);
		flush(at, STUB_ROOM);
		compare(k, stub.jump);
		/* its return address in x9 would be that of the stub's caller */
		if (k->fn != f_call)
			compare(k, stub.call);
	}
	munmap(page, 0x10000);
}

/*
 * As the tracer patches: a branch to the moved instruction replaces it. Each copy has a place of its
 * own, since QEMU 7.2 executed the former code after memcpy().
 */
static void test_patched_original_runs(void **state)
{
	uint8_t *page = code_page();

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct known *k = &known[i];
		const uint8_t *code = (const uint8_t *)(uintptr_t)k->fn;
		struct arch_stub stub;

		if (!k->is_alone)
			continue;
		uint8_t *copy = page + i * STUB_ROOM;

		memcpy(copy, code, (size_t)(k->end - code));
		make_stub(k, copy, copy + 0x8000, &stub);
		a64_store(copy, b((taddr_t)copy, stub.jump));
		flush(page, 0x10000);
		compare(k, (taddr_t)copy);
	}
	munmap(page, 0x10000);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_syscall_stub),
		cmocka_unit_test(test_operands),
#if defined(__aarch64__)
		cmocka_unit_test(test_stub_runs),
		cmocka_unit_test(test_patched_original_runs),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
