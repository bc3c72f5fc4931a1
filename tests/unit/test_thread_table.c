/*
 * Loops over threads: each thread that remains is visited once, in order of creation, whatever is
 * removed and added meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/types.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define THREADS 1000

static struct address_space spaces[2];
static struct process processes[2] = {{.space = &spaces[0]}, {.space = &spaces[1]}};

/* Threads of the two processes alternate; distant and adjacent ids collide in the table. */
static void fill(struct target *t, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		thread_add(t, (pid_t)(i % 2 ? i * 7919 : i + 100000), &processes[i % 2]);
}

static void empty(struct target *t)
{
	struct thread *th;
	for_each_thread(t, th)
		thread_remove(t, th);
	assert_int_equal(thread_count(t), 0);
	thread_table_deinit(&t->threads);
}

static void test_order_and_find(void **state)
{
	struct target t = {0};
	struct thread *th;
	uint64_t serial = 0;
	assert_null(thread_find(&t, 1));
	fill(&t, THREADS);
	for_each_thread(&t, th) {
		assert_int_equal(th->serial, ++serial);
		assert_ptr_equal(thread_find(&t, th->tid), th);
	}
	assert_int_equal(serial, THREADS);
	unsigned count = 0;
	for_each_thread_in(&t, &spaces[1], th) {
		assert_ptr_equal(th->process, &processes[1]);
		count++;
	}
	assert_int_equal(count, THREADS / 2);
	empty(&t);
}

static struct thread *with_serial(struct target *t, uint64_t serial)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (th->serial == serial)
			return th;
	}
	return NULL;
}

/*
 * At each thread with id ...5, those with ...3, ...5 and ...8 are removed: before, at and after
 * it.
 */
static void test_removal(void **state)
{
	struct target t = {0};
	struct thread *th;
	uint64_t last = 0;
	fill(&t, THREADS);
	for_each_thread(&t, th) {
		uint64_t serial = th->serial;
		assert_int_equal(serial, last + (serial % 10 == 9 ? 2 : 1));
		last = serial;
		for (int i = 0; serial % 10 == 5 && i < 3; i++)
			thread_remove(&t, with_serial(&t, serial + (uint64_t)(int[]){-2, 0, 3}[i]));
	}
	assert_int_equal(last, THREADS);
	assert_int_equal(thread_count(&t), THREADS * 7 / 10);
	for_each_thread(&t, th)
		assert_ptr_equal(thread_find(&t, th->tid), th);
	empty(&t);
}

/* Threads that are added, so many that the table grows, are visited too. */
static void test_addition(void **state)
{
	struct target t = {0};
	struct thread *th;
	uint64_t last = 0;
	fill(&t, 10);
	for_each_thread(&t, th) {
		assert_int_equal(th->serial, ++last);
		if (last < THREADS)
			thread_add(&t, (pid_t)(500000 + last), &processes[0]);
		if (last % 3 == 0)
			thread_remove(&t, th);
	}
	assert_int_equal(last, THREADS + 9);
	empty(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_find),
		cmocka_unit_test(test_removal),
		cmocka_unit_test(test_addition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
