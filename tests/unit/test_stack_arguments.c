/* Functions that use arguments on the stack, which no stub may call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arch/arch.h"

#define FUNCTION(name, body)                                                        \
	__asm__(".text\n.balign 16\n" #name ":\n" body "\n" #name "_end:\nnop\n"); \
	extern const uint8_t name[], name##_end[]

FUNCTION(plain, "push %rbp; mov %rsp, %rbp; sub $0x40, %rsp; mov %rdi, -8(%rbp); lea 0x10(%rsp), %rax;"
		"call other; leave; ret");
FUNCTION(seventh, "push %rbx; sub $16, %rsp; mov 0x20(%rsp), %rax; add $16, %rsp; pop %rbx; ret");
FUNCTION(by_frame, "push %rbp; mov %rsp, %rbp; test %rdi, %rdi; jz 1f; mov 0x10(%rbp), %rax; 1: pop %rbp; ret");
FUNCTION(variadic, "sub $0xd8, %rsp; lea 0xe0(%rsp), %rax; mov %rax, 8(%rsp); add $0xd8, %rsp; ret");
FUNCTION(by_table, "sub $24, %rsp; cmp $4, %rdi; ja 1f; jmp *%rax; 1: add $24, %rsp; ret;"
		   "mov 0x20(%rsp), %eax; add $24, %rsp; ret");
FUNCTION(passes_on, "test %rdi, %rdi; jz 1f; jmp other; 1: xor %eax, %eax; ret");
FUNCTION(other, "mov 8(%rsp), %rax; ret");
FUNCTION(late, "push %rbx; pop %rbx; add $8, %rdi; jmp other");

static bool uses(const uint8_t *start, const uint8_t *end, taddr_t *next)
{
	const struct arch_code code = {.bytes = start, .size = (size_t)(end - start),
				       .at = (taddr_t)(uintptr_t)start};

	return arch_native->uses_stack_arguments(&code, next);
}

static void test_stack_arguments(void **state)
{
	taddr_t next;

	(void)state;
	assert_false(uses(plain, plain_end, &next));
	assert_int_equal(next, 0);
	assert_true(uses(seventh, seventh_end, &next));
	assert_true(uses(by_frame, by_frame_end, &next));
	assert_true(uses(variadic, variadic_end, &next));
	assert_true(uses(by_table, by_table_end, &next));
	assert_true(uses(other, other_end, &next));
	assert_false(uses(passes_on, passes_on_end, &next));
	assert_int_equal(next, (uintptr_t)other);
	assert_false(uses(late, late_end, &next));
	assert_int_equal(next, (uintptr_t)other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
