/* Call sites of a profile with many stacks: what names say of a frame is found once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "output/call_sites.h"

#define DEPTH 60u   /* frames of a stack, all in a stripped object */
#define STACKS 300u /* that differ in the innermost frame */
#define SIZE 16u

static struct symbol_frame nameless;
static struct symbol symbol = {.object = "/bin/stripped", .frame = &nameless, .count = 1};
static unsigned looked_up;

static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	(void)ctx;
	(void)frame;
	looked_up += part == SYMBOL_ALL;
	return &symbol;
}

static void test_once(void **state)
{
	const struct profile_options options = {.max_snapshots = 100, .detailed_freq = 10, .alignment = 16};
	struct profile *p = profile_new(&options, 0);
	struct calltree *t = profile_calltree(p);
	struct filter *filter = filter_new(200, false);
	struct report r = {.profile = p, .filter = filter, .symbol = find_symbol};
	struct call_site_sum site[2];
	uint64_t bytes[STACKS + 1];
	uint32_t outer = 0;

	(void)state;
	profile_start(p, 0);
	for (uint32_t i = 1; i < DEPTH; i++)
		outer = calltree_get_child(t, outer, calltree_get_frame(t, 0x1000 * i, 1));
	for (uint32_t i = 1; i <= STACKS; i++) {
		uint32_t inner = calltree_get_frame(t, 0x1000 * (DEPTH + i), 1);

		profile_event(p, &(struct event){.kind = EVENT_ALLOC, .addr = 0x1000 * i, .size = SIZE * i,
						 .node = calltree_get_child(t, outer, inner)});
		bytes[i] = SIZE * i;
	}
	const struct leaf_amounts held = {.bytes = bytes, .count = STACKS};

	assert_int_equal(call_sites_largest(&r, &held, site, ARRAY_SIZE(site), NULL), ARRAY_SIZE(site));
	for (unsigned i = 0; i < ARRAY_SIZE(site); i++) {
		assert_int_equal(site[i].bytes, SIZE * (STACKS - i));
		free(site[i].text);
	}
	/* each frame, and the site of each stack, whose label is made for some */
	assert_in_range(looked_up, STACKS, DEPTH + 4 * STACKS);
	profile_free(p);
	filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
