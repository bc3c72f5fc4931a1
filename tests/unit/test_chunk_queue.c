/* Chunks that are passed from one thread to another: all of them, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "inspect/heap_report.h"

struct sum {
	uint64_t count;
	uint64_t others; /* chunks that were not the next */
};

static struct glibc_chunk chunk_of(uint64_t number)
{
	return (struct glibc_chunk){.addr = number * 48, .size = 16 + number % 5 * 16,
				    .kind = number % 3 ? CHUNK_LIVE : CHUNK_BIN,
				    .type = (uint32_t)(number % 7)};
}

static void add(void *ctx, const struct glibc_chunk *c)
{
	struct sum *s = ctx;
	struct glibc_chunk next = chunk_of(s->count++);

	s->others += c->addr != next.addr || c->size != next.size || c->kind != next.kind ||
		     c->type != next.type;
}

static void check(uint64_t count, bool wants_thread)
{
	struct chunk_queue q;
	struct sum sum = {0};

	chunk_queue_start(&q, add, &sum, wants_thread);
	for (uint64_t i = 0; i < count; i++) {
		struct glibc_chunk c = chunk_of(i);

		chunk_queue_add(&q, &c);
	}
	chunk_queue_finish(&q);
	assert_int_equal(sum.count, count);
	assert_int_equal(sum.others, 0);
}

static void test_all_are_passed_in_order(void **state)
{
	const uint64_t counts[] = {0, 1, CHUNK_BATCH - 1, CHUNK_BATCH, CHUNK_BATCH + 1,
				   CHUNK_BATCH * CHUNK_BATCHES, 100 * CHUNK_BATCH + 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		check(counts[i], false);
		check(counts[i], true);
	}
}

static void test_again_and_again(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 500; i++)
		check(i * 97 % (3 * CHUNK_BATCH), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_passed_in_order),
		cmocka_unit_test(test_again_and_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
