/* The code of Go's runtime.asmcgocall, by which the walk comes from C's stack to a goroutine's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/first_load.h"
#include "arch/unwind_code.h"

#define MOV_SP 0x48, 0x8b, 0x66, 0x38        /* mov 0x38(%rsi),%rsp */
#define ALIGN 0x48, 0x83, 0xe4, 0xf0
#define STORE_G 0x64, 0x48, 0x89, 0x3c, 0x25, 0xf8, 0xff, 0xff, 0xff /* mov %rdi,%fs:-8 */
#define SET_SP 0x48, 0x89, 0xf4              /* mov %rsi,%rsp */

/* Go 1.19 */
static const uint8_t old[] = {
	MOV_SP, 0x48, 0x83, 0xec, 0x40, ALIGN, 0x48, 0x89, 0x7c, 0x24, 0x30, 0x48, 0x8b, 0x7f,
	0x08, 0x48, 0x29, 0xd7, 0x48, 0x89, 0x7c, 0x24, 0x28, 0x48, 0x89, 0xdf, 0x48, 0x89, 0xd9,
	0xff, 0xd0, /* call */ 0x48, 0x8b, 0x7c, 0x24, 0x30, 0x48, 0x8b, 0x77, 0x08, 0x48, 0x2b,
	0x74, 0x24, 0x28, STORE_G, SET_SP, 0x89, 0x44, 0x24, 0x18, 0xc3};
#define OLD_CALL 37

/* Go 1.24; %rcx is loaded with the offset, as the linker makes it of an access by the GOT */
static const uint8_t new[] = {
	MOV_SP, 0x48, 0x83, 0xec, 0x10, ALIGN, 0x48, 0x89, 0x7c, 0x24, 0x08, 0x48, 0x8b, 0x7f,
	0x08, 0x48, 0x29, 0xd7, 0x48, 0x89, 0x3c, 0x24, 0xe8, 1, 2, 3, 4, /* call */
	0x48, 0xc7, 0xc1, 0xf0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x7c, 0x24, 0x08, 0x48, 0x8b, 0x77,
	0x08, 0x48, 0x2b, 0x34, 0x24, 0x64, 0x48, 0x89, 0x39, SET_SP, 0x89, 0x44, 0x24, 0x20,
	0x5d, 0xc3};
#define NEW_CALL 33

/* the second call, on the same stack */
static const uint8_t same[] = {0xff, 0xd0, 0x48, 0x8b, 0x74, 0x24, 0x28, SET_SP,
			       0x89, 0x44, 0x24, 0x18, 0x5d, 0xc3};

static void test_switch(void **state)
{
	struct unwind_rule r = {0};

	assert_true(arch_returns_to_other_stack(old, OLD_CALL, sizeof(old), &r));
	assert_int_equal(r.kind, RULE_SWITCH);
	assert_int_equal(r.cfa_offset, 8);
	assert_int_equal(r.saved, 0);
	assert_int_equal(r.own_g, -8);
	assert_int_equal(r.slot[SWITCH_G], 6);
	assert_int_equal(r.slot[SWITCH_DEPTH], 5);
	assert_int_equal(r.slot[SWITCH_TOP], 1);
	assert_int_equal(r.slot[SWITCH_START], 7);
	assert_int_equal(r.slot[SWITCH_FRAME], 8);

	assert_true(arch_returns_to_other_stack(new, NEW_CALL, sizeof(new), &r));
	assert_int_equal(r.kind, RULE_SWITCH);
	assert_int_equal(r.cfa_offset, 16);
	assert_int_equal(r.saved, 1);
	assert_int_equal(r.slot[0], -2);
	assert_int_equal(r.own_g, -16);
	assert_int_equal(r.slot[SWITCH_G], 1);
	assert_int_equal(r.slot[SWITCH_DEPTH], 0);
	assert_int_equal(r.slot[SWITCH_FRAME], 2);
}

/* Without the code before the call a pad cannot check the frame. */
static void test_unknown_start(void **state)
{
	struct unwind_rule r = {0};

	assert_true(arch_returns_to_other_stack(old + OLD_CALL - 2, 2, sizeof(old) - OLD_CALL + 2,
						&r));
	assert_int_equal(r.kind, RULE_SWITCH);
	assert_int_equal(r.own_g, 0);
}

static void test_same_stack(void **state)
{
	struct unwind_rule r = {0};

	assert_true(arch_returns_to_other_stack(same, 2, sizeof(same), &r));
	assert_int_equal(r.kind, RULE_SP_DEREF);
	assert_int_equal(r.cfa_offset, 16);
	assert_int_equal(r.slot[SWITCH_DEPTH], 5);
	assert_int_equal(r.saved, 1);
}

/* Cut off, or with any one instruction's first byte changed, it is no such code. */
static void test_others(void **state)
{
	struct unwind_rule r = {0};
	uint8_t code[sizeof(old)];

	for (size_t size = OLD_CALL; size < sizeof(old); size++)
		assert_false(arch_returns_to_other_stack(old, OLD_CALL, size, &r));
	assert_false(arch_returns_to_other_stack(old, OLD_CALL - 1, sizeof(old), &r));
	assert_int_equal(r.kind, 0);
	for (size_t at = OLD_CALL; at < sizeof(old); at++) {
		memcpy(code, old, sizeof(old));
		code[at] = 0x90;
		if (at == OLD_CALL || at == OLD_CALL + 5 || at == sizeof(old) - 1)
			assert_false(arch_returns_to_other_stack(code, OLD_CALL, sizeof(code), &r));
		else
			arch_returns_to_other_stack(code, OLD_CALL, sizeof(code), &r);
	}
}

static void test_first_load(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x10,                   /* sub $16,%rsp */
		0x8b, 0x05, 0x00, 0x01, 0x00, 0x00,       /* mov 0x100(%rip),%eax */
		0x48, 0x8d, 0x1d, 0x00, 0x02, 0x00, 0x00, /* lea 0x200(%rip),%rbx */
		0x48, 0x89, 0x05, 0x00, 0x03, 0x00, 0x00, /* mov %rax,0x300(%rip) */
		0x48, 0x8b, 0x0d, 0x00, 0x04, 0x00, 0x00, /* mov 0x400(%rip),%rcx */
		0xc3};
	const struct arch_code c = {.bytes = code, .size = sizeof(code), .at = 0x1000};

	assert_int_equal(arch_find_first_load(&c, 4), 0x1000 + 10 + 0x100);
	assert_int_equal(arch_find_first_load(&c, 0), 0x1000 + 17 + 0x200);
	assert_int_equal(arch_find_first_load(&c, 8), 0x1000 + 31 + 0x400);
	assert_int_equal(arch_find_first_load(&(struct arch_code){code, 10, 0x1000, NULL, 0}, 8),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch), cmocka_unit_test(test_unknown_start),
		cmocka_unit_test(test_same_stack), cmocka_unit_test(test_others),
		cmocka_unit_test(test_first_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
