/*
 * Windows that are read ahead of a reader: wherever it goes, it finds what is in memory, and each
 * window that it goes through in ascending order is read once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "malloc/memory.h"

#define WINDOWS 200u
#define MOVES 20000u

struct memory {
	uint32_t read[WINDOWS + READ_WINDOWS]; /* by window: how often */
};

static uint8_t byte_at(taddr_t addr)
{
	return (uint8_t)(addr ^ addr >> 8 ^ addr >> 17);
}

static uint64_t fill(void *ctx, taddr_t addr, uint8_t *buf, size_t size)
{
	struct memory *m = ctx;

	assert_int_equal(addr % READ_WINDOW, 0);
	if (addr / READ_WINDOW < ARRAY_SIZE(m->read))
		__atomic_fetch_add(&m->read[addr / READ_WINDOW], 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < size; i++)
		buf[i] = byte_at(addr + i);
	return size;
}

static void check(struct read_ahead *r, taddr_t addr, size_t size)
{
	const uint8_t *found = read_ahead_find(r, addr, size);

	if (!found) {
		read_ahead_move(r, addr);
		found = read_ahead_find(r, addr, size);
	}
	assert_non_null(found);
	assert_int_equal(found[0], byte_at(addr));
	assert_int_equal(found[size - 1], byte_at(addr + size - 1));
}

static void a_walk_reads_each_window_once(void **state)
{
	struct memory m = {{0}};
	struct read_ahead r;

	read_ahead_init(&r, fill, &m);
	for (taddr_t at = 100; at < WINDOWS * (taddr_t)READ_WINDOW - READ_BEYOND; at += 3000)
		check(&r, at, READ_BEYOND);
	for (size_t i = 0; i < WINDOWS; i++)
		assert_int_equal(m.read[i], 1);
	read_ahead_deinit(&r);
	assert_int_equal(r.bytes, WINDOWS * (uint64_t)(READ_WINDOW + READ_BEYOND));
}

static void what_was_passed_last_is_still_there(void **state)
{
	struct memory m = {{0}};
	struct read_ahead r;

	read_ahead_init(&r, fill, &m);
	for (taddr_t at = 0; at < WINDOWS * (taddr_t)READ_WINDOW; at += READ_WINDOW) {
		check(&r, at, 8);
		if (at > 0)
			assert_non_null(read_ahead_find(&r, at - READ_WINDOW, READ_BEYOND));
	}
	read_ahead_deinit(&r);
}

/* Ahead by a few bytes mostly, sometimes by many windows, sometimes back. */
static void a_reader_may_jump(void **state)
{
	struct memory m = {{0}};
	struct read_ahead r;
	taddr_t at = 0;

	srand(1);
	read_ahead_init(&r, fill, &m);
	for (uint32_t i = 0; i < MOVES; i++) {
		int kind = rand() % 200;
		taddr_t far = (taddr_t)rand() % (WINDOWS * (taddr_t)READ_WINDOW);

		at = kind == 0 ? far : at + (kind < 4 ? far % (4 * READ_WINDOW) : far % 9000);
		check(&r, at, 1 + (size_t)rand() % READ_BEYOND);
	}
	check(&r, UINT64_MAX - READ_BEYOND, 8);
	read_ahead_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_reads_each_window_once),
		cmocka_unit_test(what_was_passed_last_is_still_there),
		cmocka_unit_test(a_reader_may_jump),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
