/* The snapshot engine rule by rule; numbers in comments are sections of doc/massif.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "profile/profile.h"

#define MS 1000000ull

/* One profile and the time of its next event. */
struct rig {
	struct profile *p;
	uint64_t time_ns;
	uint32_t node[4];
	uint32_t ignored;   /* this node is ignored; 0 = none */
	unsigned asked;     /* calls of is_ignored */
	uint64_t instructions;
};

static struct profile_options defaults(void)
{
	return (struct profile_options){
		.time_unit = TIME_BYTES, .peak_inaccuracy = 1.0, .detailed_freq = 10,
		.max_snapshots = 100, .heap_admin = 8, .alignment = 16,
	};
}

static struct rig *rig_new(const struct profile_options *o)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	r->time_ns = 5 * MS;
	r->p = profile_new(o, 2 * MS);
	struct calltree *t = profile_calltree(r->p);
	for (unsigned i = 0; i < 4; i++)
		r->node[i] = calltree_get_child(t, 0, calltree_get_frame(t, 0x1000 + i, 0));
	profile_start(r->p, r->time_ns);
	return r;
}

static void rig_free(struct rig *r)
{
	profile_check(r->p);
	profile_free(r->p);
	free(r);
}

static void send(struct rig *r, struct event ev)
{
	ev.time_ns = r->time_ns;
	profile_event(r->p, &ev);
}

static void alloc_at(struct rig *r, taddr_t addr, uint64_t size, unsigned site)
{
	send(r, (struct event){ .kind = EVENT_ALLOC, .addr = addr, .size = size, .node = r->node[site] });
}

static void free_at(struct rig *r, taddr_t addr)
{
	send(r, (struct event){ .kind = EVENT_FREE, .addr = addr });
}

static void begin(struct rig *r, uint32_t thread, taddr_t old)
{
	send(r, (struct event){ .kind = EVENT_REALLOC_BEGIN, .thread = thread, .old_addr = old });
}

static void end(struct rig *r, uint32_t thread, taddr_t old, taddr_t addr, uint64_t size)
{
	send(r, (struct event){ .kind = EVENT_REALLOC_END, .thread = thread, .old_addr = old, .addr = addr,
				.size = size, .node = r->node[1] });
}

static void realloc_at(struct rig *r, taddr_t old, taddr_t addr, uint64_t size)
{
	begin(r, 1, old);
	end(r, 1, old, addr, size);
}

static uint32_t count(const struct rig *r)
{
	return profile_snapshot_count(r->p);
}

static void snapshot_is(const struct rig *r, uint32_t i, enum snapshot_kind kind, uint64_t time, uint64_t heap,
			uint64_t extra)
{
	assert_true(i < count(r));
	const struct snapshot *s = profile_snapshot(r->p, i);
	assert_int_equal(s->kind, kind);
	assert_int_equal(s->time, time);
	assert_int_equal(s->heap, heap);
	assert_int_equal(s->extra, extra);
}

static uint64_t extra_of(const struct profile_options *o, uint64_t size, uint64_t align)
{
	struct rig *r = rig_new(o);
	send(r, (struct event){ .kind = EVENT_ALLOC, .addr = 0x1000, .size = size, .align = align,
				.node = r->node[0] });
	uint64_t extra = profile_totals(r->p)->extra;
	rig_free(r);
	return extra;
}

/* 2.5 */
static void sizes_follow_valgrinds_allocator(void **state)
{
	struct profile_options o = defaults();
	assert_int_equal(extra_of(&o, 0, 0), 8);
	assert_int_equal(extra_of(&o, 1, 0), 8 + 15);
	assert_int_equal(extra_of(&o, 16, 0), 8);
	assert_int_equal(extra_of(&o, 99, 0), 8 + 13);
	assert_int_equal(extra_of(&o, 4194240, 0), 8);
	assert_int_equal(extra_of(&o, 4194241, 0), 8 + 4198336 - 4194241);
	assert_int_equal(extra_of(&o, 10485760, 0), 4040);
	assert_int_equal(extra_of(&o, 100, 8), 8 + 12);
	assert_int_equal(extra_of(&o, 100, 16), 8 + 12);
	assert_int_equal(extra_of(&o, 100, 17), 8 + 12 + 16);
	assert_int_equal(extra_of(&o, 100, 4096), 8 + 12 + 2048);
	o.heap_admin = 0;
	o.alignment = 64;
	assert_int_equal(extra_of(&o, 100, 0), 12 + 32);
	assert_int_equal(extra_of(&o, 100, 16), 12);
}

/* 2.2, 2.3: an allocation updates, then takes; a free takes the peak, updates, takes. */
static void a_free_takes_the_peak_first(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	free_at(r, 0x1000);
	assert_int_equal(count(r), 4);
	snapshot_is(r, 0, SNAPSHOT_EMPTY, 0, 0, 0);
	snapshot_is(r, 1, SNAPSHOT_EMPTY, 120, 100, 20);
	snapshot_is(r, 2, SNAPSHOT_PEAK, 120, 100, 20);
	snapshot_is(r, 3, SNAPSHOT_EMPTY, 240, 0, 0);
	rig_free(r);
}

static void a_peak_must_exceed_the_inaccuracy(void **state)
{
	struct profile_options o = defaults();
	o.heap_admin = 0;
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x10000, 1600, 0);
	free_at(r, 0x10000); /* peak of 1600; 1 % of it is 16 */
	alloc_at(r, 0x10000, 1616, 0);
	free_at(r, 0x10000);
	assert_int_equal(count(r), 6);
	alloc_at(r, 0x10000, 1617, 0); /* 1632 with its slop */
	free_at(r, 0x10000);
	assert_int_equal(count(r), 9);
	snapshot_is(r, 2, SNAPSHOT_DETAILED, 1600, 1600, 0);
	snapshot_is(r, 7, SNAPSHOT_PEAK, 1600 * 2 + 1616 * 2 + 1632, 1617, 15);
	rig_free(r);
}

static void every_nth_is_detailed_counted_from_the_last_one(void **state)
{
	struct profile_options o = defaults();
	o.detailed_freq = 3;
	struct rig *r = rig_new(&o);
	for (unsigned i = 1; i <= 4; i++)
		alloc_at(r, 0x1000 * i, 16, 0); /* snapshots 1 to 4; 2 is detailed */
	free_at(r, 0x1000);                     /* 5 peak, 6 */
	alloc_at(r, 0x1000, 16, 0);             /* 7 */
	alloc_at(r, 0x9000, 16, 0);             /* 8: the third after the peak */
	static const enum snapshot_kind kinds[] = { SNAPSHOT_EMPTY, SNAPSHOT_EMPTY, SNAPSHOT_DETAILED,
		SNAPSHOT_EMPTY, SNAPSHOT_EMPTY, SNAPSHOT_PEAK, SNAPSHOT_EMPTY, SNAPSHOT_EMPTY, SNAPSHOT_DETAILED };
	assert_int_equal(count(r), ARRAY_SIZE(kinds));
	for (uint32_t i = 0; i < count(r); i++)
		assert_int_equal(profile_snapshot(r->p, i)->kind, kinds[i]);
	rig_free(r);
}

/* 2.4: equal spacing drops every second one, and the interval doubles. */
static void culling_halves_an_even_table(void **state)
{
	struct profile_options o = defaults();
	o.max_snapshots = 10;
	o.heap_admin = 0;
	struct rig *r = rig_new(&o);
	for (unsigned i = 1; i <= 9; i++)
		alloc_at(r, 0x1000 * i, 16, 0);
	static const uint64_t kept[] = { 0, 32, 64, 96, 144 };
	assert_int_equal(count(r), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(profile_snapshot(r->p, i)->time, kept[i]);
	alloc_at(r, 0xa000, 16, 0);
	assert_int_equal(count(r), 5);
	alloc_at(r, 0xb000, 16, 0);
	assert_int_equal(count(r), 6);
	snapshot_is(r, 5, SNAPSHOT_EMPTY, 176, 176, 0);
	rig_free(r);
}

static void the_interval_holds_back_normal_ones_but_no_peak(void **state)
{
	struct profile_options o = defaults();
	o.max_snapshots = 10;
	o.heap_admin = 0;
	struct rig *r = rig_new(&o);
	for (unsigned i = 1; i <= 9; i++)
		alloc_at(r, 0x100000 * i, 1600, 0); /* then the smallest interval is 3200 */
	uint32_t before = count(r);
	assert_int_equal(before, 5);
	alloc_at(r, 0x1000, 800, 0);
	assert_int_equal(count(r), before);
	free_at(r, 0x1000); /* a peak, which restarts the interval; nothing after the update */
	assert_int_equal(count(r), before + 1);
	assert_int_equal(profile_snapshot(r->p, before)->kind, SNAPSHOT_PEAK);
	assert_int_equal(profile_snapshot(r->p, before)->time, 9 * 1600 + 800);
	alloc_at(r, 0x2000, 2384, 0); /* more than 3200 after the last normal one, less after the peak */
	assert_int_equal(count(r), before + 1);
	alloc_at(r, 0x3000, 16, 0);
	assert_int_equal(count(r), before + 2);
	rig_free(r);
}

static void the_peak_is_never_culled(void **state)
{
	struct profile_options o = defaults();
	o.max_snapshots = 10;
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100000, 0);
	free_at(r, 0x1000);
	for (unsigned i = 0; i < 5000; i++) {
		alloc_at(r, 0x1000, 8, 0);
		free_at(r, 0x1000);
	}
	unsigned peaks = 0;
	for (uint32_t i = 0; i < count(r); i++) {
		const struct snapshot *s = profile_snapshot(r->p, i);
		peaks += s->kind == SNAPSHOT_PEAK && s->heap == 100000;
	}
	assert_int_equal(peaks, 1);
	assert_true(count(r) < 10);
	rig_free(r);
}

/* 2, 2.5, 2.2: realloc. */
static void a_realloc_that_fits_keeps_its_block(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 400, 0);
	static const uint64_t sizes[] = { 800, 400, 800 };
	static const uint64_t times[] = { 808, 808, 808 };
	for (unsigned i = 0; i < 3; i++) {
		realloc_at(r, 0x1000, 0x1000, sizes[i]);
		const struct snapshot *s = profile_snapshot(r->p, count(r) - 1);
		assert_int_equal(s->heap, sizes[i]);
		assert_int_equal(s->heap + s->extra, 808);
		assert_int_equal(s->time, times[i]);
	}
	/* start, 400, 800, peak before the shrink, 400, 800 */
	assert_int_equal(count(r), 6);
	snapshot_is(r, 3, SNAPSHOT_PEAK, 808, 800, 8);
	assert_int_equal(profile_totals(r->p)->reallocations, 3);
	assert_int_equal(profile_totals(r->p)->allocated_bytes, 400 + 400 + 400);
	assert_int_equal(profile_leaf(r->p, 1)->live_bytes, 0);
	assert_int_equal(profile_leaf(r->p, 2)->live_bytes, 800);
	assert_int_equal(profile_leaf(r->p, 2)->total_bytes, 800); /* what it grew */
	rig_free(r);
}

static void between_its_halves_a_realloc_holds_the_bytes_not_the_address(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	begin(r, 1, 0x1000);
	assert_int_equal(profile_totals(r->p)->live_bytes, 100);
	assert_int_equal(blocks_count(profile_blocks(r->p)), 0);
	alloc_at(r, 0x1000, 30, 2); /* another thread gets the address first */
	profile_check(r->p);
	end(r, 1, 0x1000, 0x2000, 200);
	assert_int_equal(profile_totals(r->p)->live_bytes, 230);
	assert_int_equal(profile_totals(r->p)->live_blocks, 2);
	assert_int_equal(profile_totals(r->p)->replaced, 0);
	rig_free(r);
}

static void a_failed_realloc_changes_nothing(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	uint32_t before = count(r);
	realloc_at(r, 0x1000, 0, 1ull << 60);
	assert_int_equal(count(r), before);
	assert_int_equal(profile_totals(r->p)->failed, 1);
	struct block block;
	assert_true(blocks_find(profile_blocks(r->p), 0x1000, &block));
	assert_int_equal(block.size, 100);
	rig_free(r);
}

static void realloc_to_nothing_frees_or_keeps_as_the_allocator_says(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	realloc_at(r, 0x1000, 0x1000, 0);
	assert_int_equal(profile_totals(r->p)->live_blocks, 1);
	assert_int_equal(profile_totals(r->p)->extra, 8 + 112);
	realloc_at(r, 0x1000, 0, 0);
	assert_int_equal(profile_totals(r->p)->live_blocks, 0);
	assert_int_equal(profile_totals(r->p)->frees, 1);
	assert_int_equal(profile_totals(r->p)->reallocations, 1);
	assert_int_equal(profile_totals(r->p)->failed, 0);
	rig_free(r);
}

static void realloc_of_null_is_an_allocation(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	realloc_at(r, 0, 0x1000, 50);
	assert_int_equal(profile_totals(r->p)->allocations, 1);
	assert_int_equal(profile_totals(r->p)->reallocations, 0);
	realloc_at(r, 0, 0, 50);
	assert_int_equal(profile_totals(r->p)->failed, 1);
	rig_free(r);
}

static void a_realloc_that_never_ends_is_undone(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	alloc_at(r, 0x2000, 100, 0);
	begin(r, 1, 0x1000);
	begin(r, 2, 0x2000);
	profile_thread_exit(r->p, 1);
	begin(r, 2, 0x1000); /* thread 2 left its first one by longjmp */
	struct block block;
	assert_true(blocks_find(profile_blocks(r->p), 0x2000, &block));
	assert_false(blocks_find(profile_blocks(r->p), 0x1000, &block));
	profile_finish(r->p, r->time_ns);
	assert_true(blocks_find(profile_blocks(r->p), 0x1000, &block));
	rig_free(r);
}

/* As when ptmem detaches while a thread is in realloc, which has moved its block. */
static void a_realloc_that_never_ends_has_released_an_address_given_out_again(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	begin(r, 1, 0x1000);
	alloc_at(r, 0x1000, 30, 2);
	profile_finish(r->p, r->time_ns);
	assert_int_equal(profile_totals(r->p)->replaced, 0);
	assert_int_equal(profile_totals(r->p)->frees, 1);
	assert_int_equal(profile_totals(r->p)->live_bytes, 30);
	assert_int_equal(profile_totals(r->p)->live_blocks, 1);
	profile_check(r->p);
	rig_free(r);
}

/* 2.7 */
static void unknown_pointers_are_counted_and_nothing_else(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	free_at(r, 0x1000);
	free_at(r, 0);
	realloc_at(r, 0x1000, 0x2000, 10);
	assert_int_equal(count(r), 1);
	assert_int_equal(profile_leaf_count(r->p), 0);
	assert_int_equal(profile_totals(r->p)->unknown_frees, 2);
	assert_int_equal(profile_totals(r->p)->live_blocks, 0);
	rig_free(r);
}

static void an_allocation_at_a_live_address_replaces(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	alloc_at(r, 0x1000, 16, 2);
	assert_int_equal(count(r), 3);
	snapshot_is(r, 2, SNAPSHOT_EMPTY, 120 + 120 + 24, 16, 8);
	assert_int_equal(profile_totals(r->p)->replaced, 1);
	assert_int_equal(profile_totals(r->p)->frees, 0);
	rig_free(r);
}

/* 2.8 */
static bool ignore_one(void *ctx, uint32_t node)
{
	struct rig *r = ctx;
	r->asked++;
	return node == r->ignored;
}

static struct rig *rig_ignoring(unsigned site)
{
	struct profile_options o = defaults();
	o.is_ignored = ignore_one;
	struct rig *r = rig_new(&o);
	profile_set_ctx(r->p, r, NULL);
	r->ignored = r->node[site];
	return r;
}

static void an_ignored_block_leaves_no_trace(void **state)
{
	struct rig *r = rig_ignoring(0);
	for (unsigned i = 0; i < 5; i++) {
		alloc_at(r, 0x1000, 100, 0);
		realloc_at(r, 0x1000, 0x2000, 300); /* at a site that counts: stays ignored */
		free_at(r, 0x2000);
	}
	assert_int_equal(r->asked, 1);
	assert_int_equal(count(r), 1);
	assert_int_equal(profile_leaf_count(r->p), 0);
	static const struct profile_totals nothing;
	assert_memory_equal(profile_totals(r->p), &nothing, sizeof(nothing));
	rig_free(r);
}

static void a_realloc_at_an_ignored_site_leaves_the_bytes(void **state)
{
	struct rig *r = rig_ignoring(1);
	alloc_at(r, 0x1000, 100, 0);
	realloc_at(r, 0x1000, 0x1000, 200);
	assert_int_equal(count(r), 2);
	alloc_at(r, 0x3000, 100, 0);
	realloc_at(r, 0x3000, 0x3000, 10); /* shrinks: the peak attempt is made */
	assert_int_equal(count(r), 4);
	snapshot_is(r, 3, SNAPSHOT_PEAK, 240, 200, 40);
	free_at(r, 0x1000);
	free_at(r, 0x3000);
	assert_int_equal(count(r), 4);
	assert_int_equal(profile_totals(r->p)->live_bytes, 200);
	assert_int_equal(profile_totals(r->p)->unknown_frees, 0);
	rig_free(r);
}

/* 1: a site first seen after a snapshot is not in it, a freed one is with 0 bytes. */
static void a_detailed_snapshot_has_the_leaves_of_its_moment(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	uint64_t *bytes;
	alloc_at(r, 0x1000, 100, 0);
	alloc_at(r, 0x2000, 50, 2);
	free_at(r, 0x2000); /* snapshot 3: peak */
	alloc_at(r, 0x3000, 10, 3);
	realloc_at(r, 0x1000, 0x4000, 60); /* no peak; from site 0 to 1 */
	assert_int_equal(profile_snapshot_leaves(r->p, 3, &bytes), 2);
	assert_int_equal(bytes[1], 100);
	assert_int_equal(bytes[2], 50);
	free(bytes);
	assert_int_equal(profile_snapshot_leaves(r->p, UINT32_MAX, &bytes), 4);
	assert_int_equal(bytes[1], 0);
	assert_int_equal(bytes[2], 0);
	assert_int_equal(bytes[3], 10);
	assert_int_equal(bytes[4], 60);
	free(bytes);
	rig_free(r);
}

/* Time units. */
static void milliseconds_count_from_the_first_reading(void **state)
{
	struct profile_options o = defaults();
	o.time_unit = TIME_MS;
	struct rig *r = rig_new(&o);
	r->time_ns += 3 * MS - 1;
	alloc_at(r, 0x1000, 16, 0);
	r->time_ns += 1;
	alloc_at(r, 0x2000, 16, 0);
	r->time_ns -= 2 * MS; /* another thread's clock reading, late */
	alloc_at(r, 0x3000, 16, 0);
	snapshot_is(r, 1, SNAPSHOT_EMPTY, 2, 16, 8);
	snapshot_is(r, 2, SNAPSHOT_EMPTY, 3, 32, 16);
	snapshot_is(r, 3, SNAPSHOT_EMPTY, 3, 48, 24);
	assert_int_equal(profile_totals(r->p)->peak_time_ns, 3 * MS);
	struct snapshot now;
	profile_current(r->p, r->time_ns + 10 * MS, &now);
	assert_int_equal(now.time, 11);
	assert_int_equal(now.heap, 48);
	rig_free(r);
}

static void time_passes_with_blocks_that_are_released_at_once(void **state)
{
	struct profile_options o = defaults();

	o.time_unit = TIME_MS;
	struct rig *r = rig_new(&o);
	const uint64_t start = r->time_ns + 200 * MS;
	for (unsigned i = 0; i < 200; i++) { /* until not every event makes a snapshot */
		r->time_ns += MS;
		alloc_at(r, 0x1000, 1000, 0);
		free_at(r, 0x1000);
	}
	const struct quick_event ev[] = { /* the last one's thread is behind the other */
		{.time_ns = start + 100, .addr = 0x2000, .size = 10, .node = r->node[1]},
		{.time_ns = start + 900, .addr = 0x2000, .is_free = true},
		{.time_ns = start + 200, .addr = 0x3000, .size = 2000, .node = r->node[2]},
	};

	(void)state;
	assert_int_equal(profile_quick(r->p, ev, ARRAY_SIZE(ev)), 2);
	assert_int_equal(profile_totals(r->p)->peak_bytes, 2000);
	assert_int_equal(profile_totals(r->p)->peak_time_ns, 200 * MS + 900);
	rig_free(r);
}

static uint64_t instructions(void *ctx)
{
	return ctx ? ((struct rig *)ctx)->instructions += 1000 : 0;
}

static void instructions_come_from_the_counter(void **state)
{
	struct profile_options o = defaults();
	o.time_unit = TIME_INSTRUCTIONS;
	o.instructions = instructions;
	struct rig *r = rig_new(&o);
	profile_set_ctx(r->p, NULL, r);
	alloc_at(r, 0x1000, 16, 0);
	free_at(r, 0x1000);
	snapshot_is(r, 1, SNAPSHOT_EMPTY, 1000, 16, 8);
	snapshot_is(r, 2, SNAPSHOT_PEAK, 2000, 16, 8);
	snapshot_is(r, 3, SNAPSHOT_EMPTY, 2000, 0, 0);
	rig_free(r);
}

/* Section 5. */
static void the_end_may_be_the_peak(void **state)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		struct profile_options o = defaults();
		o.peak_at_exit = wanted;
		struct rig *r = rig_new(&o);
		alloc_at(r, 0x1000, 100, 0);
		profile_finish(r->p, r->time_ns);
		assert_int_equal(count(r), 2 + wanted);
		if (wanted)
			snapshot_is(r, 2, SNAPSHOT_PEAK, 120, 100, 20);
		rig_free(r);
	}
}

static void without_heap_only_stacks_show(void **state)
{
	struct profile_options o = defaults();
	o.no_heap = true;
	o.detailed_freq = 1;
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 100, 0);
	free_at(r, 0x1000);
	alloc_at(r, 0x1000, 100, 0);
	assert_int_equal(count(r), 1);
	send(r, (struct event){ .kind = EVENT_STACK, .size = 640 });
	snapshot_is(r, 1, SNAPSHOT_DETAILED, 640, 0, 0);
	assert_int_equal(profile_snapshot(r->p, 1)->stacks, 640);
	uint64_t *bytes;
	assert_int_equal(profile_snapshot_leaves(r->p, 1, &bytes), 0);
	free(bytes);
	assert_int_equal(profile_totals(r->p)->live_bytes, 100);
	rig_free(r);
}

static void stacks_are(struct rig *r, uint64_t bytes)
{
	send(r, (struct event){ .kind = EVENT_STACK, .size = bytes });
	assert_int_equal(profile_stacks(r->p), bytes);
}

static void stacks_at(const struct rig *r, uint32_t i, enum snapshot_kind kind, uint64_t time, uint64_t heap,
		      uint64_t stacks)
{
	snapshot_is(r, i, kind, time, heap, heap ? 8 : 0);
	assert_int_equal(profile_snapshot(r->p, i)->stacks, stacks);
}

/* 2.2, 2.3: growth updates, then takes; a shrink takes the peak, updates, takes. Time is what moved. */
static void stacks_grow_and_shrink(void **state)
{
	struct profile_options o = defaults();
	struct rig *r = rig_new(&o);
	stacks_are(r, 640);
	stacks_at(r, 1, SNAPSHOT_EMPTY, 640, 0, 640);
	stacks_are(r, 640); /* nothing changed: no attempt */
	assert_int_equal(count(r), 2);
	stacks_are(r, 1000);
	stacks_at(r, 2, SNAPSHOT_EMPTY, 1000, 0, 1000);
	stacks_are(r, 900);
	stacks_at(r, 3, SNAPSHOT_PEAK, 1000, 0, 1000);
	stacks_at(r, 4, SNAPSHOT_EMPTY, 1100, 0, 900);
	assert_int_equal(count(r), 5);
	alloc_at(r, 0x1000, 96, 0);
	stacks_at(r, 5, SNAPSHOT_EMPTY, 1204, 96, 900);
	stacks_are(r, 906); /* 1010 in all: not more than 1 % above the last peak */
	stacks_are(r, 800);
	stacks_at(r, 7, SNAPSHOT_EMPTY, 1316, 96, 800);
	stacks_are(r, 907); /* 1011 */
	free_at(r, 0x1000);
	stacks_at(r, 9, SNAPSHOT_PEAK, 1423, 96, 907);
	stacks_at(r, 10, SNAPSHOT_EMPTY, 1527, 0, 907);
	snapshot_is(r, 3, SNAPSHOT_DETAILED, 1000, 0, 0); /* was the peak */
	stacks_are(r, 0);
	stacks_at(r, 11, SNAPSHOT_EMPTY, 2434, 0, 0);
	assert_int_equal(count(r), 12);
	assert_int_equal(profile_totals(r->p)->peak_stacks, 1000);
	rig_free(r);
}

/* 2.3: the end is offered with its stacks. */
static void stacks_are_in_the_peak_at_exit(void **state)
{
	struct profile_options o = defaults();
	o.peak_at_exit = true;
	struct rig *r = rig_new(&o);
	alloc_at(r, 0x1000, 96, 0);
	stacks_are(r, 5000);
	profile_finish(r->p, r->time_ns);
	stacks_at(r, 3, SNAPSHOT_PEAK, 5104, 96, 5000);
	rig_free(r);
}

/* 2.13: a child inherits everything, and then is independent. */
static void a_clone_is_independent(void **state)
{
	struct profile_options o = defaults();
	o.detailed_freq = 2;
	struct rig *r = rig_new(&o);
	for (unsigned i = 0; i < 300; i++)
		alloc_at(r, 0x1000 * (i + 1), 10 + i, i % 4);
	begin(r, 5, 0x1000);
	struct rig child = *r;
	child.p = profile_clone(r->p);
	uint32_t snapshots = count(r);
	for (unsigned i = 0; i < 300; i++)
		free_at(&child, 0x1000 * (i + 1)); /* also the held one */
	assert_int_equal(profile_totals(child.p)->live_bytes, 0);
	assert_int_equal(profile_totals(child.p)->unknown_frees, 0);
	assert_int_equal(profile_totals(r->p)->live_blocks, 300);
	assert_int_equal(count(r), snapshots);
	profile_check(child.p);
	profile_free(child.p);
	rig_free(r);
}

/* The journals hold a leaf once for each snapshot that is kept, however many are taken. */
/* Live from the first snapshot on; no call allocated them, and time does not advance. */
static void earlier_blocks_are_live_and_no_calls(void **state)
{
	struct profile_options o = defaults();
	struct event ev = {.kind = EVENT_EARLIER, .time_ns = 5 * MS};
	(void)state;
	o.keep_times = o.keep_history = true;
	struct profile *p = profile_new(&o, 5 * MS);
	struct calltree *t = profile_calltree(p);

	ev.node = calltree_get_child(t, 0, calltree_get_frame(t, 0x1000, 0));
	for (unsigned i = 1; i <= 3; i++) {
		ev.addr = 0x1000 * i;
		ev.size = 24;
		profile_event(p, &ev);
	}
	profile_check(p);
	profile_start(p, 5 * MS);
	const struct profile_totals *all = profile_totals(p);

	assert_int_equal(profile_snapshot(p, 0)->heap, 72);
	assert_int_equal(profile_snapshot(p, 0)->extra, 48);
	assert_int_equal(profile_snapshot(p, 0)->time, 0);
	assert_int_equal(all->allocations + all->allocated_bytes, 0);
	assert_int_equal(all->earlier_bytes, 72);
	assert_int_equal(all->peak_bytes, 72);
	profile_event(p, &(struct event){.kind = EVENT_FREE, .addr = 0x2000, .time_ns = 6 * MS});
	profile_event(p, &(struct event){.kind = EVENT_REALLOC_END, .old_addr = 0x3000, .addr = 0x4000,
					 .size = 30, .node = ev.node, .time_ns = 7 * MS});
	profile_check(p);
	assert_int_equal(all->frees, 1);
	assert_int_equal(all->reallocations, 1);
	assert_int_equal(all->allocated_bytes, 6);
	assert_int_equal(all->unknown_frees, 0);
	assert_int_equal(all->live_bytes, 54);
	assert_int_equal(all->live_blocks, 2);
	profile_free(p);
}

static void journals_stay_bounded(void **state)
{
	struct profile_options o = defaults();
	o.max_snapshots = 10;
	o.detailed_freq = 1;
	o.time_unit = TIME_MS;
	struct rig *r = rig_new(&o);
	struct calltree *t = profile_calltree(r->p);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t node = calltree_get_child(t, 0, calltree_get_frame(t, 0x5000 + i % 1000, 0));
		r->time_ns += MS;
		send(r, (struct event){ .kind = EVENT_ALLOC, .addr = 0x100000, .size = i, .node = node });
	}
	profile_check(r->p);
	assert_true(profile_memory(r->p) < 10 * 1000 * 12 * 2 + 200000);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_follow_valgrinds_allocator),
		cmocka_unit_test(a_free_takes_the_peak_first),
		cmocka_unit_test(a_peak_must_exceed_the_inaccuracy),
		cmocka_unit_test(every_nth_is_detailed_counted_from_the_last_one),
		cmocka_unit_test(culling_halves_an_even_table),
		cmocka_unit_test(the_interval_holds_back_normal_ones_but_no_peak),
		cmocka_unit_test(the_peak_is_never_culled),
		cmocka_unit_test(a_realloc_that_fits_keeps_its_block),
		cmocka_unit_test(between_its_halves_a_realloc_holds_the_bytes_not_the_address),
		cmocka_unit_test(a_failed_realloc_changes_nothing),
		cmocka_unit_test(realloc_to_nothing_frees_or_keeps_as_the_allocator_says),
		cmocka_unit_test(realloc_of_null_is_an_allocation),
		cmocka_unit_test(a_realloc_that_never_ends_is_undone),
		cmocka_unit_test(a_realloc_that_never_ends_has_released_an_address_given_out_again),
		cmocka_unit_test(unknown_pointers_are_counted_and_nothing_else),
		cmocka_unit_test(an_allocation_at_a_live_address_replaces),
		cmocka_unit_test(an_ignored_block_leaves_no_trace),
		cmocka_unit_test(a_realloc_at_an_ignored_site_leaves_the_bytes),
		cmocka_unit_test(a_detailed_snapshot_has_the_leaves_of_its_moment),
		cmocka_unit_test(milliseconds_count_from_the_first_reading),
		cmocka_unit_test(time_passes_with_blocks_that_are_released_at_once),
		cmocka_unit_test(instructions_come_from_the_counter),
		cmocka_unit_test(the_end_may_be_the_peak),
		cmocka_unit_test(without_heap_only_stacks_show),
		cmocka_unit_test(stacks_grow_and_shrink),
		cmocka_unit_test(stacks_are_in_the_peak_at_exit),
		cmocka_unit_test(a_clone_is_independent),
		cmocka_unit_test(earlier_blocks_are_live_and_no_calls),
		cmocka_unit_test(journals_stay_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
