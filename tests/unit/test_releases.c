/* Tests of profile/releases: what was allocated is live or was released, by the stack that did it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/flows.h"

enum { ALLOCATES = 1, FREES, RESIZES, OTHER };

static const struct profile_options options = {
	.time_unit = TIME_BYTES, .max_snapshots = 100, .detailed_freq = 10, .alignment = 16};

struct both {
	struct profile *profile;
	struct releases *releases;
};

static bool is_other(void *ctx, uint32_t node)
{
	(void)ctx;
	return node == OTHER;
}

static void send(struct both *b, const struct event *ev)
{
	profile_event(b->profile, ev);
	releases_note(b->releases, profile_totals(b->profile), ev->node);
}

static void alloc(struct both *b, uint32_t node, taddr_t addr, uint64_t size)
{
	send(b, &(struct event){.kind = EVENT_ALLOC, .node = node, .addr = addr, .size = size});
}

static void release(struct both *b, uint32_t node, taddr_t addr)
{
	send(b, &(struct event){.kind = EVENT_FREE, .node = node, .addr = addr});
}

static void resize(struct both *b, uint32_t node, taddr_t old, taddr_t addr, uint64_t size)
{
	send(b, &(struct event){.kind = EVENT_REALLOC_BEGIN, .old_addr = old});
	send(b, &(struct event){.kind = EVENT_REALLOC_END, .node = node, .old_addr = old,
				.addr = addr, .size = size});
}

static void check(const struct releases *r, uint32_t i, uint32_t node, uint64_t blocks, uint64_t bytes)
{
	const struct release *release = releases_get(r, i);

	assert_int_equal(release->node, node);
	assert_int_equal(release->all.blocks, blocks);
	assert_int_equal(release->all.bytes, bytes);
}

static struct both start(void)
{
	struct profile_options o = options;

	o.is_ignored = is_other;
	struct both b = {profile_new(&o, 0), releases_new()};

	struct calltree *t = profile_calltree(b.profile);

	for (uint32_t i = ALLOCATES; i <= OTHER; i++)
		assert_int_equal(calltree_get_child(t, 0, calltree_get_frame(t, 0x1000 + i, 0)), i);
	profile_start(b.profile, 0);
	return b;
}

static void finish(struct both *b)
{
	releases_free(b->releases);
	profile_free(b->profile);
}

static void frees_and_reallocs(void **state)
{
	(void)state;
	struct both b = start();

	alloc(&b, ALLOCATES, 0x100, 50);
	alloc(&b, ALLOCATES, 0x200, 60);
	alloc(&b, ALLOCATES, 0x300, 0);
	resize(&b, RESIZES, 0x100, 0x400, 90);  /* grows, moves */
	release(&b, FREES, 0xdead);             /* unknown */
	assert_int_equal(releases_count(b.releases), 0);
	resize(&b, RESIZES, 0x400, 0x400, 70);  /* shrinks */
	resize(&b, RESIZES, 0x400, 0x500, 30);  /* shrinks, moves */
	release(&b, FREES, 0x300);
	release(&b, FREES, 0x200);
	resize(&b, FREES, 0x500, 0, 0);         /* realloc(p, 0) */
	assert_int_equal(releases_count(b.releases), 2);
	check(b.releases, 0, RESIZES, 0, 60);
	check(b.releases, 1, FREES, 3, 90);
	assert_int_equal(profile_totals(b.profile)->allocated_bytes, 150);
	finish(&b);
}

static void others(void **state)
{
	(void)state;
	struct both b = start();

	send(&b, &(struct event){.kind = EVENT_EARLIER, .node = ALLOCATES, .addr = 0x100, .size = 7});
	alloc(&b, OTHER, 0x200, 10); /* does not count */
	release(&b, FREES, 0x200);
	assert_int_equal(releases_count(b.releases), 0);
	release(&b, FREES, 0x100);
	alloc(&b, ALLOCATES, 0x300, 5);
	struct releases *child = releases_clone(b.releases);
	alloc(&b, RESIZES, 0x300, 6); /* the first one's release was not seen */
	check(b.releases, 0, FREES, 1, 7);
	check(b.releases, 1, RESIZES, 1, 5);
	assert_int_equal(releases_count(child), 1);
	check(child, 0, FREES, 1, 7);
	releases_free(child);
	releases_note(NULL, profile_totals(b.profile), 0);
	finish(&b);
}

static void recent_ones(void **state)
{
	(void)state;
	struct both b = start();

	alloc(&b, ALLOCATES, 0x100, 50);
	alloc(&b, ALLOCATES, 0x200, 60);
	release(&b, FREES, 0x100);
	releases_restart(b.releases);
	assert_int_equal(releases_get(b.releases, 0)->recent.blocks, 0);
	release(&b, FREES, 0x200);
	check(b.releases, 0, FREES, 2, 110);
	assert_int_equal(releases_get(b.releases, 0)->recent.blocks, 1);
	assert_int_equal(releases_get(b.releases, 0)->recent.bytes, 60);
	releases_restart(NULL);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_and_reallocs),
		cmocka_unit_test(recent_ones),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
