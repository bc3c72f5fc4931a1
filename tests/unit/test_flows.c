/* Flows: what each stack allocated, holds and freed; and the names of xtree files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "output/massif.h"
#include "profile/flows.h"

static void alloc(struct flows *f, uint32_t node, taddr_t addr, uint64_t size)
{
	flows_event(f, &(struct event){.kind = EVENT_ALLOC, .node = node, .addr = addr, .size = size});
}

static void release(struct flows *f, uint32_t node, taddr_t addr)
{
	flows_event(f, &(struct event){.kind = EVENT_FREE, .node = node, .addr = addr});
}

static void begin(struct flows *f, uint32_t thread, taddr_t old)
{
	flows_event(f, &(struct event){.kind = EVENT_REALLOC_BEGIN, .thread = thread, .old_addr = old});
}

static void end(struct flows *f, uint32_t thread, uint32_t node, taddr_t old, taddr_t addr, uint64_t size)
{
	flows_event(f, &(struct event){.kind = EVENT_REALLOC_END, .thread = thread, .node = node, .old_addr = old,
				       .addr = addr, .size = size});
}

static void check(const struct flows *f, uint32_t node, const uint64_t *want)
{
	for (uint32_t i = 0; i < flows_count(f); i++) {
		if (flows_get(f, i)->node != node)
			continue;
		for (int e = 0; e < FLOW_EVENT_COUNT; e++)
			assert_int_equal(flows_get(f, i)->value[e], want[e]);
		return;
	}
	fail_msg("no stack %u", node);
}

#define CHECK_FLOW(f, node, ...) check(f, node, (const uint64_t[]){__VA_ARGS__})

static void test_full(void **state)
{
	struct flows *f = flows_new(true);

	(void)state;
	alloc(f, 1, 0x1000, 100);
	alloc(f, 1, 0x2000, 50);
	alloc(f, 2, 0, 77); /* failed */
	release(f, 3, 0x1000);
	release(f, 3, 0x1000); /* unknown by then */
	CHECK_FLOW(f, 1, 50, 1, 150, 2, 0, 0);
	CHECK_FLOW(f, 3, 0, 0, 0, 0, 100, 1);
	begin(f, 7, 0x2000);
	alloc(f, 4, 0x2000, 30); /* meanwhile another thread gets the address */
	end(f, 7, 5, 0x2000, 0x3000, 60);
	CHECK_FLOW(f, 1, 0, 0, 150, 2, 0, 0);
	CHECK_FLOW(f, 4, 30, 1, 30, 1, 0, 0);
	CHECK_FLOW(f, 5, 60, 1, 60, 1, 50, 1);
	begin(f, 7, 0x3000);
	end(f, 7, 6, 0x3000, 0, 1 << 30); /* failed: stays */
	CHECK_FLOW(f, 5, 60, 1, 60, 1, 50, 1);
	end(f, 7, 6, 0x3000, 0, 0); /* freed */
	CHECK_FLOW(f, 6, 0, 0, 0, 0, 60, 1);
	end(f, 7, 8, 0, 0x4000, 9); /* realloc(NULL, 9) */
	CHECK_FLOW(f, 8, 9, 1, 9, 1, 0, 0);
	alloc(f, 9, 0x5000, 0);
	release(f, 3, 0x5000); /* as Valgrind: the free of a block of 0 bytes is not seen */
	CHECK_FLOW(f, 9, 0, 1, 0, 1, 0, 0);
	flows_free(f);
}

static void test_allocs(void **state)
{
	struct flows *f = flows_new(false);

	(void)state;
	alloc(f, 1, 0x1000, 100);
	alloc(f, 2, 0x2000, 0);
	begin(f, 7, 0x1000);
	struct flows *child = flows_clone(f); /* it is not transferred there */

	release(child, 0, 0x1000);
	CHECK_FLOW(child, 1, 0, 0, 100, 1, 0, 0);
	end(f, 7, 3, 0x1000, 0x1000, 40);
	release(f, 0, 0x2000);
	CHECK_FLOW(f, 1, 0, 0, 100, 1, 0, 0);
	CHECK_FLOW(f, 2, 0, 0, 0, 1, 0, 0);
	CHECK_FLOW(f, 3, 40, 1, 40, 1, 0, 0);
	assert_int_equal(flows_count(f), 3);
	flows_free(child);
	flows_free(f);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(xtree_is_massif_name("a.ms"));
	assert_true(xtree_is_massif_name("/x.ms.d/a.kcg"));
	assert_false(xtree_is_massif_name("a.m"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full), cmocka_unit_test(test_allocs), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
