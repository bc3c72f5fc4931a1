/* Bytes of blocks on touched pages, against a count byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "inspect/cold.h"

#define START UINT64_C(0x7000000)
#define PAGES 40u
#define BYTES (PAGES * PAGE_SIZE_MIN)

enum { UNTOUCHED, TOUCHED, UNSURE };

static void add_ranges(const uint8_t state[PAGES], struct touched_pages *out)
{
	for (unsigned i = 0; i < PAGES; i++) {
		taddr_t at = START + i * (taddr_t)PAGE_SIZE_MIN;
		struct touched_range *last = out->list.count ? &out->list.data[out->list.count - 1] : NULL;

		if (state[i] == UNTOUCHED)
			continue;
		if (last && last->end == at && last->is_sure == (state[i] == TOUCHED) && rand() % 2)
			last->end += PAGE_SIZE_MIN;
		else
			*vec_add(&out->list) = (struct touched_range){at, at + PAGE_SIZE_MIN, state[i] == TOUCHED};
	}
}

static struct cold_bytes count(const uint8_t state[PAGES], uint64_t from, uint64_t size)
{
	struct cold_bytes c = {0};

	for (uint64_t at = from; at < from + size; at++) {
		uint64_t page = at / PAGE_SIZE_MIN;
		bool is_own = page * PAGE_SIZE_MIN >= from && (page + 1) * PAGE_SIZE_MIN <= from + size;

		c.cold += state[page] == UNTOUCHED;
		c.shared += state[page] == UNSURE || (state[page] == TOUCHED && !is_own);
	}
	return c;
}

static void bytes_are_those_of_pages(void **state)
{
	for (unsigned seed = 0; seed < 100; seed++) {
		uint8_t pages[PAGES];
		struct touched_pages p = {0};
		size_t at = 0;

		srand(seed);
		for (unsigned i = 0; i < PAGES; i++)
			pages[i] = (uint8_t)(rand() % 3);
		add_ranges(pages, &p);
		for (uint64_t from = (uint64_t)rand() % 5000; from < BYTES;) {
			uint64_t most = rand() % 4 ? 300 : 20000, some = (uint64_t)rand() % most;
			uint64_t size = MIN(some, BYTES - from);
			struct cold_bytes got = cold_bytes_of(&p, &at, START + from, size);
			struct cold_bytes want = count(pages, from, size);

			assert_int_equal(got.cold, want.cold);
			assert_int_equal(got.shared, want.shared);
			/* most ascend, some go back */
			from = rand() % 10 ? from + size + 16 : from / 2 + 1;
			if (rand() % 200 == 0)
				break;
		}
		vec_deinit(&p.list);
	}
}

static void pages_of_this_process_are_counted(void **state)
{
	struct access_counts c;
	uint64_t resident = 0;

	assert_int_equal(accessed_read(getpid(), &c), 0);
	for (size_t i = 0; i < c.list.count; i++) {
		assert_true(i == 0 || c.list.data[i - 1].end <= c.list.data[i].start);
		assert_true(c.list.data[i].accessed <= c.list.data[i].resident);
		resident += c.list.data[i].is_anonymous ? c.list.data[i].resident : 0;
	}
	assert_true(resident > 0);
	vec_deinit(&c.list);
	assert_int_equal(accessed_read(0x7fffffff, &c), -ENOENT);
	vec_deinit(&c.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_those_of_pages),
		cmocka_unit_test(pages_of_this_process_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
