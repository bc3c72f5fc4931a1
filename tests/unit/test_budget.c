/*
 * --budget: when the sampling interval changes, and that estimates stay unbiased if it does. The
 * samples are chosen by the recorder's own code, from the table of distances that pads use.
 * Everything is seeded: the same numbers come out on each run.
 */
#define RECORDER_CPU "arch/x86_64/recorder_cpu.h"
#include "arch/recorder/recorder_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/hash.h"
#include "live/budget.h"
#include "profile/profile.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/pads.h"
#include "tracee/state/target_state.h"

/* -- the rule -- */

#define SECOND UINT64_C(1000000000)

/* A window in which sampling costs @percent of a CPU, half of it in the program. */
static struct budget_window window(double percent)
{
	uint64_t cost = (uint64_t)(percent / 100 * (double)SECOND);

	return (struct budget_window){SECOND, cost / 2, cost / 2 / BUDGET_RECORD_NS};
}

static bool step(struct budget *b, double percent)
{
	struct budget_window w = window(percent);

	return budget_step(b, &w);
}

static void calm(struct budget *b, uint32_t windows)
{
	for (uint32_t i = 0; i < windows; i++)
		assert_false(step(b, 0.1));
}

static void test_rule(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 0.02, 512 << 10);
	assert_int_equal(b.shift_max, 10);
	assert_false(step(&b, 1.9));
	assert_true(step(&b, 2.1));
	assert_int_equal(b.shift, 1);
	assert_true(step(&b, 15)); /* by what is needed, at once */
	assert_int_equal(b.shift, 4);
	for (int i = 0; i < 100; i++)
		assert_false(step(&b, 1)); /* between a quarter and the budget */
	calm(&b, 9);
	assert_false(step(&b, 1));
	calm(&b, 9);
	assert_true(step(&b, 0.1));
	assert_int_equal(b.shift, 3);
	assert_true(step(&b, 3)); /* too short again: the next attempt is later */
	assert_true(step(&b, 3)); /* that says nothing about the attempt */
	assert_int_equal(b.shift, 5);
	calm(&b, 19);
	assert_true(step(&b, 0.1));
	assert_int_equal(b.shift, 4);
	assert_true(step(&b, 100000));
	assert_int_equal(b.shift, 10);
	assert_false(step(&b, 100000));
}

/* After attempts that all fail, one is made every 600 windows. */
static void test_rule_patience(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 0.02, 512 << 10);
	for (uint32_t patience = 10; patience < 2400; patience *= 2) {
		assert_true(step(&b, 3));
		calm(&b, MIN(patience, 600) - 1);
		assert_true(step(&b, 0.1));
		assert_int_equal(b.shift, 0);
	}
}

/* Stops count if they alone cost more than the budget, and if ptmem's cost is above it at all. */
static void test_rule_stops(void **state)
{
	struct budget_window dear = window(2.1), cheap = window(1.9);
	struct budget b;

	(void)state;
	budget_init(&b, 0.02, 512 << 10);
	assert_true(budget_is_out_of_reach(&b, &dear, 1001));
	assert_false(budget_is_out_of_reach(&b, &dear, 999));
	assert_false(budget_is_out_of_reach(&b, &cheap, 1000000));
	budget_init(&b, 0.0001, 512 << 10);
	assert_true(budget_is_out_of_reach(&b, &dear, 100));
	assert_false(budget_is_out_of_reach(&b, &dear, 99));
}

static void test_rule_limits(void **state)
{
	struct budget b;
	const struct budget_window busy = {SECOND, SECOND, 10}, none = {0, 0, 0};

	(void)state;
	budget_init(&b, 0.02, ESTIMATE_INTERVAL_MAX);
	assert_int_equal(b.shift_max, 0);
	assert_false(step(&b, 50));
	budget_init(&b, 0.02, ESTIMATE_INTERVAL_MAX / 5);
	assert_int_equal(b.shift_max, 2);
	assert_false(budget_step(&b, &busy)); /* ptmem works, but not for ten samples */
	assert_false(budget_step(&b, &none));
	assert_true(step(&b, 50));
	assert_int_equal(b.shift, 2);
	for (uint32_t left = 2; left > 0; left--) {
		calm(&b, 9);
		assert_true(step(&b, 0));
	}
	calm(&b, 1000);
	assert_int_equal(b.shift, 0);
}

/* -- estimates -- */

#define INTERVAL 256
#define SAMPLES 1000
#define BLOCKS 3000
#define THREADS 3
#define CHANGED_EVERY 7 /* blocks */

static const uint64_t sizes[] = {1, 24, 100, 256, 700, 3000};

struct world {
	struct target target;
	struct address_space space;
	struct pads pads;
	struct pad_globals globals;
};

static void open_world(struct world *w)
{
	const struct pad_memory_options o = {
		.ring_size = 65536, .slot_count = THREADS, .rule_bits = 8};
	int fd = memfd_create("pads", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	*w = (struct world){.target.options.samples = {.heap = INTERVAL, .seed = 1}};
	assert_int_equal(pad_memory_init(&w->pads.memory, fd, &o), 0);
	w->pads.memory.slots.used = THREADS;
	heap_sampling_start(&w->target, &w->space);
	w->space.pads = &w->pads;
	w->target.pads = &w->globals;
	heap_sampling_start_pads(&w->target, &w->space);
}

static void close_world(struct world *w)
{
	heap_sampling_free(w->space.heap.sampling);
	pad_memory_deinit(&w->pads.memory);
	free(w->globals.distances);
}

/* Estimates of the bytes by weights of three kinds; the last two are wrong. */
enum { BY_RECORD, BY_CURRENT, BY_SMALLEST, KINDS };

struct sums {
	double bytes[KINDS], blocks;
};

static void add_weights(struct sums *sums, struct block *block, const uint8_t shifts[KINDS])
{
	for (int kind = 0; kind < KINDS; kind++) {
		block->sample_shift = shifts[kind];
		struct weight weight = estimate_weigh(INTERVAL, block, 0);

		sums->bytes[kind] += (double)weight.bytes;
		if (kind == BY_RECORD)
			sums->blocks += (double)weight.blocks / (double)ESTIMATE_UNIT;
	}
}

/* BLOCKS blocks, by several threads in turn, while the interval is one of seven. */
static struct sums run(struct world *w, uint64_t seed)
{
	struct sums sums = {0};
	struct pad_memory *m = &w->pads.memory;

	m->sample_seed = hash_u64(seed);
	for (uint32_t i = 0; i < THREADS; i++)
		heap_sampling_seed_slot(m, i);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		if (i % CHANGED_EVERY == 0)
			pad_memory_set_sample_shift(m, hash_u64(seed << 32 | i) % 7);
		struct block block = {.addr = 0x10000 + 4096ull * i,
				      .size = sizes[i / THREADS % ARRAY_SIZE(sizes)]};
		uint32_t taken = takes_sample(m->control, pad_memory_slot(m, i % THREADS), block.size);
		uint8_t shifts[KINDS] = {(uint8_t)(taken - 1), (uint8_t)m->control->sample_shift, 0};

		if (taken)
			add_weights(&sums, &block, shifts);
	}
	return sums;
}

struct outcome {
	double sum, squares;
};

static void note(struct outcome *o, double value)
{
	o->sum += value;
	o->squares += value * value;
}

/* How many standard errors the mean of the estimates is from @truth. */
static double bias(const struct outcome *o, double truth)
{
	double mean = o->sum / SAMPLES, variance = o->squares / SAMPLES - mean * mean;

	return fabs(mean - truth) / sqrt(variance / SAMPLES);
}

static void test_unbiased(void **state)
{
	struct outcome bytes[KINDS] = {0}, blocks = {0};
	struct world w;
	double truth = 0;

	(void)state;
	open_world(&w);
	for (uint32_t i = 0; i < BLOCKS; i++)
		truth += (double)sizes[i / THREADS % ARRAY_SIZE(sizes)];
	for (uint64_t seed = 1; seed <= SAMPLES; seed++) {
		struct sums sums = run(&w, seed);

		for (int kind = 0; kind < KINDS; kind++)
			note(&bytes[kind], sums.bytes[kind]);
		note(&blocks, sums.blocks);
	}
	if (bias(&bytes[BY_RECORD], truth) > 2 || bias(&blocks, BLOCKS) > 2)
		fail_msg("%.2f standard errors for bytes, %.2f for blocks",
			 bias(&bytes[BY_RECORD], truth), bias(&blocks, BLOCKS));
	if (bias(&bytes[BY_CURRENT], truth) < 4 || bias(&bytes[BY_SMALLEST], truth) < 4)
		fail_msg("wrong weights are not found: %.2f and %.2f standard errors",
			 bias(&bytes[BY_CURRENT], truth), bias(&bytes[BY_SMALLEST], truth));
	close_world(&w);
}

/* A release subtracts what the allocation added, whatever the interval is then. */
static void test_released(void **state)
{
	struct profile_options o = {.time_unit = TIME_BYTES, .detailed_freq = 10, .max_snapshots = 100,
				    .heap_admin = 8, .alignment = 16, .sample_interval = INTERVAL,
				    .keep_times = true, .keep_history = true};
	struct profile *p = profile_new(&o, 0);
	struct calltree *t = profile_calltree(p);
	struct event ev = {.thread = 1, .kind = EVENT_ALLOC};

	(void)state;
	profile_start(p, 0);
	ev.node = calltree_get_child(t, 0, calltree_get_frame(t, 0x1000, 0));
	for (uint32_t i = 0; i < BLOCKS; i++) {
		ev.addr = 0x10000 + 4096ull * i;
		ev.size = sizes[i % ARRAY_SIZE(sizes)];
		ev.sample_shift = hash_u64(i) % (ESTIMATE_SHIFT_MAX + 1);
		profile_event(p, &ev);
	}
	profile_check(p);
	assert_true(profile_totals(p)->live_bytes > 0 && profile_totals(p)->live_variance > 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		ev = (struct event){.thread = 1, .kind = EVENT_FREE, .addr = 0x10000 + 4096ull * i};
		profile_event(p, &ev);
	}
	profile_check(p);
	assert_int_equal(profile_totals(p)->live_bytes, 0);
	assert_int_equal(profile_totals(p)->live_blocks, 0);
	assert_int_equal(profile_totals(p)->live_variance, 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_rule_limits),
		cmocka_unit_test(test_rule_patience),
		cmocka_unit_test(test_rule_stops),
		cmocka_unit_test(test_unbiased),
		cmocka_unit_test(test_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
