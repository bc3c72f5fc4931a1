/* Blocks announced by the program: no slop, and several at one address (doc/massif.md 2.12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap_calls.h"
#include "profile/flows.h"
#include "profile/profile.h"

static struct profile *new_profile(void)
{
	const struct profile_options o = {
		.time_unit = TIME_BYTES, .peak_inaccuracy = 1.0, .detailed_freq = 10, .max_snapshots = 100, .heap_admin = 8,
		.alignment = 16,
	};
	struct profile *p = profile_new(&o, 0);
	for (unsigned i = 1; i < 4; i++)
		calltree_get_child(profile_calltree(p), 0, calltree_get_frame(profile_calltree(p), 0x1000 + i, 0));
	profile_start(p, 0);
	return p;
}

static void make(struct profile *p, enum heap_function function, taddr_t addr, uint64_t size, uint32_t node)
{
	profile_event(p, &(struct event){.kind = EVENT_ALLOC, .function = (uint8_t)function, .addr = addr, .size = size,
					 .node = node, .time_ns = 1});
	profile_check(p);
}

static void end(struct profile *p, taddr_t addr)
{
	profile_event(p, &(struct event){.kind = EVENT_FREE, .addr = addr, .time_ns = 1});
	profile_check(p);
}

static void no_slop(void **state)
{
	struct profile *p = new_profile();
	make(p, FUNCTION_REQUEST, 0x1000, 33, 1);
	make(p, FUNCTION_MALLOC, 0x2000, 33, 1);
	assert_int_equal(profile_totals(p)->live_bytes, 66);
	assert_int_equal(profile_totals(p)->extra, 8 + 8 + 15);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->extra, 8 + 15);
	profile_free(p);
}

static void the_newest_goes_first(void **state)
{
	struct profile *p = new_profile();
	make(p, FUNCTION_MALLOC, 0x1000, 4096, 1);
	make(p, FUNCTION_REQUEST, 0x1000, 10, 2);
	make(p, FUNCTION_REQUEST, 0x1000, 20, 3);
	assert_int_equal(profile_totals(p)->live_bytes, 4126);
	assert_int_equal(profile_totals(p)->live_blocks, 3);
	struct profile *c = profile_clone(p);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 4106);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 4096);
	profile_quick(p, &(struct quick_event){ .time_ns = 1, .addr = 0x1000, .is_free = true }, 1);
	assert_int_equal(profile_totals(p)->live_bytes, 0);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->unknown_frees, 1);
	assert_int_equal(profile_totals(p)->replaced, 0);
	for (int i = 0; i < 3; i++)
		end(c, 0x1000);
	assert_int_equal(profile_totals(c)->live_blocks, 0);
	profile_free(p);
	profile_free(c);
}

static int count_bytes(void *ctx, const struct block *block)
{
	*(uint64_t *)ctx += block->size;
	return 0;
}

static void many_at_one_address(void **state)
{
	struct profile *p = new_profile();
	uint64_t bytes = 0;
	for (unsigned i = 1; i <= 1000; i++)
		profile_event(p, &(struct event){.kind = EVENT_ALLOC, .function = FUNCTION_REQUEST, .addr = 0x5000,
						 .size = i, .node = 1});
	profile_check(p);
	profile_each_block(p, count_bytes, &bytes);
	assert_int_equal(bytes, 500500);
	for (unsigned i = 1000; i > 0; i--) {
		assert_int_equal(profile_totals(p)->live_bytes, i * (i + 1) / 2);
		profile_quick(p, &(struct quick_event){ .time_ns = 1, .addr = 0x5000, .is_free = true }, 1);
	}
	assert_int_equal(profile_totals(p)->live_blocks, 0);
	make(p, FUNCTION_REQUEST, 0x5000, 1, 1);
	end(p, 0x5000);
	profile_free(p);
}

/* malloc returns an address at which an announced block was forgotten. */
static void forgotten(void **state)
{
	struct profile *p = new_profile();
	make(p, FUNCTION_REQUEST, 0x1000, 10, 1);
	profile_quick(p, &(struct quick_event){ .time_ns = 1, .addr = 0x1000, .size = 64, .node = 2 }, 1);
	profile_check(p);
	assert_int_equal(profile_totals(p)->live_bytes, 74);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 10);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 0);
	profile_free(p);
}

static void move(struct profile *p, taddr_t from, taddr_t to, uint64_t size)
{
	profile_event(p, &(struct event){.kind = EVENT_REALLOC_BEGIN, .old_addr = from, .thread = 1, .time_ns = 1});
	profile_check(p);
	profile_event(p, &(struct event){.kind = EVENT_REALLOC_END, .old_addr = from, .addr = to, .size = size, .node = 3,
					 .thread = 1, .time_ns = 1});
	profile_check(p);
}

static void realloc_over_others(void **state)
{
	struct profile *p = new_profile();
	make(p, FUNCTION_MALLOC, 0x1000, 100, 1);
	make(p, FUNCTION_REQUEST, 0x1000, 10, 2);
	move(p, 0x1000, 0x1000, 50);   /* the newest one replaces it */
	assert_int_equal(profile_totals(p)->live_bytes, 150);
	move(p, 0x1000, 0, 60);        /* failed */
	assert_int_equal(profile_totals(p)->live_bytes, 150);
	move(p, 0x1000, 0x3000, 70);   /* gone: the older one is visible again */
	assert_int_equal(profile_totals(p)->live_bytes, 170);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 70);
	make(p, FUNCTION_REQUEST, 0x4000, 5, 1);
	move(p, 0x3000, 0x4000, 7);    /* over another */
	assert_int_equal(profile_totals(p)->live_bytes, 12);
	end(p, 0x4000);
	end(p, 0x4000);
	assert_int_equal(profile_totals(p)->live_blocks, 0);
	profile_free(p);
}

static bool ignores_two(void *ctx, uint32_t node)
{
	(void)ctx;
	return node == 2;
}

static void ignored_ones(void **state)
{
	const struct profile_options o = {
		.time_unit = TIME_BYTES, .peak_inaccuracy = 1.0, .detailed_freq = 10, .max_snapshots = 100, .heap_admin = 8,
		.alignment = 16, .is_ignored = ignores_two,
	};
	struct profile *p = profile_new(&o, 0);
	for (unsigned i = 1; i < 4; i++)
		calltree_get_child(profile_calltree(p), 0, calltree_get_frame(profile_calltree(p), 0x1000 + i, 0));
	make(p, FUNCTION_MALLOC, 0x1000, 100, 1);
	make(p, FUNCTION_REQUEST, 0x1000, 10, 2); /* ignored */
	make(p, FUNCTION_REQUEST, 0x1000, 20, 3);
	assert_int_equal(profile_totals(p)->live_bytes, 120);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 100);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 100);
	end(p, 0x1000);
	assert_int_equal(profile_totals(p)->live_bytes, 0);
	profile_free(p);
}

static void in_flows(void **state)
{
	struct flows *f = flows_new(true);
	struct event ev = {.kind = EVENT_ALLOC, .function = FUNCTION_MALLOC, .addr = 0x1000, .size = 100, .node = 1};
	flows_event(f, &ev);
	ev = (struct event){.kind = EVENT_ALLOC, .function = FUNCTION_REQUEST, .addr = 0x1000, .size = 10, .node = 2};
	flows_event(f, &ev);
	struct flows *c = flows_clone(f);
	assert_int_equal(flows_get(c, 0)->value[FLOW_LIVE_BYTES], 100);
	assert_int_equal(flows_get(c, 1)->value[FLOW_LIVE_BYTES], 10);
	ev = (struct event){.kind = EVENT_FREE, .addr = 0x1000, .node = 3};
	flows_event(c, &ev);
	assert_int_equal(flows_get(c, 1)->value[FLOW_LIVE_BYTES], 0);
	assert_int_equal(flows_get(c, 0)->value[FLOW_LIVE_BYTES], 100);
	flows_event(c, &ev);
	assert_int_equal(flows_get(c, 0)->value[FLOW_LIVE_BYTES], 0);
	flows_free(f);
	flows_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slop), cmocka_unit_test(the_newest_goes_first), cmocka_unit_test(many_at_one_address),
		cmocka_unit_test(forgotten), cmocka_unit_test(realloc_over_others), cmocka_unit_test(ignored_ones),
		cmocka_unit_test(in_flows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
