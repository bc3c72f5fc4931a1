/*
 * Bytes of stack from stack pointers (profile/stacks.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/types.h"
#include "profile/stacks.h"

#define HIGH 0x7ffffff0000ull
#define LOW (HIGH - 0x10000000)

static void depth_is_from_the_first_stack_pointer(void **state)
{
	struct stacks *s = stacks_new();
	(void)state;
	assert_int_equal(stacks_bytes(s), 0);
	stacks_add(s, 1, LOW, HIGH);
	assert_int_equal(stacks_bytes(s), 0);
	stacks_see(s, 1, HIGH - 640);
	assert_int_equal(stacks_bytes(s), 640);
	stacks_see(s, 1, HIGH - 48);
	assert_int_equal(stacks_bytes(s), 48);
	stacks_see(s, 1, LOW); /* however far between two readings */
	assert_int_equal(stacks_bytes(s), HIGH - LOW);
	stacks_see(s, 1, HIGH + 16); /* bytes pushed by clone are subtracted */
	assert_int_equal(stacks_bytes(s), 0);
	stacks_free(s);
}

static void threads_add_up(void **state)
{
	struct stacks *s = stacks_new();
	(void)state;
	static const uint32_t threads[] = {50, 7, 90, 8, 51};
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		stacks_add(s, threads[i], 0x100000 * threads[i], 0x100000 * threads[i] + 0x80000);
	uint64_t sum = 0;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		stacks_see(s, threads[i], 0x100000 * threads[i] + 0x80000 - 1000 * threads[i]);
		sum += 1000 * threads[i];
		assert_int_equal(stacks_bytes(s), sum);
	}
	stacks_remove(s, 50);
	assert_int_equal(stacks_bytes(s), sum - 50000);
	stacks_see(s, 50, 0x100000 * 50 + 0x100); /* gone */
	stacks_see(s, 3, 0x100000); /* never added: a vfork's child */
	stacks_remove(s, 3);
	assert_int_equal(stacks_bytes(s), sum - 50000);
	stacks_see(s, 51, 0x100000 * 51 + 0x80000 - 1); /* the next one is still the same thread */
	assert_int_equal(stacks_bytes(s), sum - 50000 - 51000 + 1);
	stacks_add(s, 90, 0x1000, 0x2000); /* the number is reused by another thread */
	assert_int_equal(stacks_bytes(s), sum - 50000 - 51000 + 1 - 90000);
	stacks_free(s);
}

/* A signal handler's stack, or a coroutine's: the thread's own stack keeps its last size. */
static void another_stack_comes_on_top(void **state)
{
	struct stacks *s = stacks_new();
	(void)state;
	stacks_add(s, 1, LOW, HIGH);
	stacks_see(s, 1, HIGH - 1000);
	stacks_see(s, 1, 0x600000);
	assert_int_equal(stacks_bytes(s), 1000); /* highest address known so far */
	stacks_see(s, 1, 0x600000 - 300);
	assert_int_equal(stacks_bytes(s), 1300);
	stacks_see(s, 1, 0x600000 + 100); /* higher still */
	assert_int_equal(stacks_bytes(s), 1000);
	stacks_see(s, 1, 0x600000);
	assert_int_equal(stacks_bytes(s), 1100);
	stacks_see(s, 1, 0x600000 - 2000001); /* a third one */
	assert_int_equal(stacks_bytes(s), 1000);
	stacks_see(s, 1, 0x600000 - 2000001 - 2000000); /* still the same one */
	assert_int_equal(stacks_bytes(s), 2001000);
	stacks_see(s, 1, HIGH - 500);
	assert_int_equal(stacks_bytes(s), 500);
	stacks_see(s, 1, 0x600000 - 300); /* there again */
	assert_int_equal(stacks_bytes(s), 500);
	stacks_see(s, 1, LOW - 1); /* below the own one */
	assert_int_equal(stacks_bytes(s), 500);
	stacks_see(s, 1, 0x600000);
	stacks_see(s, 1, 0x600000 - 300);
	assert_int_equal(stacks_bytes(s), 800);
	stacks_remove(s, 1);
	assert_int_equal(stacks_bytes(s), 0);
	stacks_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_is_from_the_first_stack_pointer),
		cmocka_unit_test(threads_add_up),
		cmocka_unit_test(another_stack_comes_on_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
