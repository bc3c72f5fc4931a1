/*
 * The sampler of bytes and the estimates from samples. Everything here is seeded: the same numbers
 * come out on each run.
 *
 * The statistical tests take SAMPLES samples of one known population. The bounds leave chance hardly
 * any room, so that the seeds need not be lucky ones: the mean of all estimates is within three of its
 * standard errors of the truth (one failure in 370), and about 95 % of the single estimates are
 * within two of the standard errors that they claim. Weights that are wrong by 3 % must not pass:
 * that is many standard errors.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/byte_sampler.h"
#include "profile/history.h"
#include "profile/profile.h"

#define SAMPLES 1000

/* The share of sampled blocks is 1 - exp(-s / R). */
static void test_probability(void **state)
{
	static const uint64_t sizes[] = {1, 16, 1000, 4096, 10000, 40000};
	const double n = 1000000;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct byte_sampler s;
		double p = -expm1(-(double)sizes[i] / 4096), hits = 0;

		byte_sampler_init(&s, 4096, 7 + i);
		for (int k = 0; k < (int)n; k++)
			hits += byte_sampler_take(&s, sizes[i]);
		assert_true(fabs(hits - n * p) < 3 * sqrt(n * p * (1 - p)) + 1);
	}
}

/* Distances have mean and deviation R; a block of 0 bytes has no mark. */
static void test_distance(void **state)
{
	struct byte_sampler s, same;
	double n = 1000000, sum = 0, squares = 0, r = 1 << 19;

	(void)state;
	byte_sampler_init(&s, 1 << 19, 1);
	byte_sampler_init(&same, 1 << 19, 1);
	for (int i = 0; i < (int)n; i++) {
		double d = (double)byte_sampler_draw(&s) + 0.5;

		assert_true((uint64_t)d == byte_sampler_draw(&same));
		sum += d;
		squares += (d - r) * (d - r);
	}
	assert_true(fabs(sum / n - r) < 3 * r / sqrt(n));
	assert_true(fabs(sqrt(squares / n) / r - 1) < 0.01);
	byte_sampler_init(&s, 1, 1);
	for (int i = 0; i < 1000; i++)
		assert_false(byte_sampler_take(&s, 0));
}

/* Weights in closed form, and their limits. */
/*
 * Processes that allocate about one interval each, as many short children do, have samplers of
 * their own: what all estimate is unbiased, since the distance to the first mark is drawn, too.
 */
static void test_restarts(void **state)
{
	const double size = 1000, interval = 16384;
	const uint32_t runs = 400, children = 500, blocks = 20;
	uint64_t hits = 0;

	(void)state;
	for (uint32_t i = 0; i < runs * children; i++) {
		struct byte_sampler s;

		byte_sampler_init(&s, (uint64_t)interval, i);
		for (uint32_t k = 0; k < blocks; k++)
			hits += byte_sampler_take(&s, (uint64_t)size);
	}
	double p = -expm1(-size / interval), expected = runs * children * (double)blocks * p;

	assert_true(fabs((double)hits - expected) < 4 * sqrt(expected * (1 - p)));
}

static void test_weights(void **state)
{
	const uint64_t r = 524288;
	struct block block = {.addr = 0x1000, .size = 64};
	struct weight w = estimate_weigh(r, &block, 8);
	double p = -expm1(-64.0 / 524288);

	(void)state;
	assert_true(fabs((double)w.bytes - 64 / p) <= 1);
	assert_true(fabs((double)w.extra - 8 / p) <= 1);
	assert_int_equal(estimate_count(w.blocks), (uint64_t)(1 / p + 0.5));
	assert_true(fabs(estimate_error(r, w.variance) / (double)r - 1) < 0.001);
	block.size = 100 * r + 1;
	w = estimate_weigh(r, &block, 8);
	assert_int_equal(w.bytes, block.size);
	assert_int_equal(w.extra, 8);
	assert_int_equal(w.blocks, ESTIMATE_UNIT);
	assert_int_equal(w.variance, 0);
	/* the bound holds for all sizes */
	for (uint64_t size = 1; size < 100 * r; size = size * 3 + 1) {
		block.size = size;
		w = estimate_weigh(r, &block, 0);
		assert_true(estimate_error(r, w.variance) <= estimate_error_bound(r, w.bytes) * 1.001);
	}
}

/* Rounding cancels, even where a weight is a few bytes. */
static void test_rounding(void **state)
{
	double n = 100000, sum = 0, want = n * 3 / -expm1(-3.0 / 2);

	(void)state;
	for (int i = 0; i < (int)n; i++) {
		struct block block = {.addr = 0x5500000 + 32ull * (unsigned)i, .size = 3};

		sum += (double)estimate_weigh(2, &block, 0).bytes;
	}
	assert_true(fabs(sum - want) < 3 * 0.5 * sqrt(n));
}

static void test_resolution(void **state)
{
	const uint64_t r = 1 << 20;
	struct block block = {.addr = 0x1000, .size = 16};
	double bytes = 0, variance = 0;

	(void)state;
	for (int samples = 1; samples <= 4; samples++) {
		struct weight w = estimate_weigh(r, &block, 0);

		bytes += (double)w.bytes;
		variance += (double)w.variance;
		assert_int_equal(estimate_is_below_resolution(
					 bytes, estimate_error(r, (uint64_t)variance)),
				 samples < 3);
	}
	block.size = 100 * r; /* known exactly from one sample */
	struct weight w = estimate_weigh(r, &block, 0);
	assert_false(estimate_is_below_resolution((double)w.bytes, estimate_error(r, w.variance)));
}

/* -- many samples of a population -- */

/* Blocks of @size; every third is freed. */
struct site {
	uint64_t size;
	int count;
};

struct outcome {
	double sum, squares; /* of the estimates */
	int within;          /* two of their own standard errors of the truth */
};

struct estimate {
	double value, error;
};

static void note(struct outcome *o, struct estimate e, double truth)
{
	o->sum += e.value;
	o->squares += (e.value - truth) * (e.value - truth);
	o->within += fabs(e.value - truth) <= 2 * e.error;
}

/* How many standard errors the mean of estimates times @factor is from @truth. */
static double bias(const struct outcome *o, double truth, double factor)
{
	double mean = factor * o->sum / SAMPLES, deviation = factor * sqrt(o->squares / SAMPLES);

	return deviation > 0 ? fabs(mean - truth) / (deviation / sqrt(SAMPLES)) : mean - truth;
}

/* The estimates of a run. recent: of the history, allocated in the second half and live. */
struct figures {
	struct estimate live, recent;
	double blocks, total, extra;
};

#define HALF_MS 50u /* of the run */

static struct estimate find_recent(struct profile *p)
{
	struct cell *cell;
	uint64_t bytes = 0, variance = 0;

	profile_sync_history(p);
	const struct history *h = profile_history(p);
	size_t n = cells_sorted(&h->cells, &cell);

	assert_int_equal(h->shift, 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t sign = cell[i].died == CELL_NEVER ? 1 : UINT64_MAX;

		if (cell[i].born >= HALF_MS) {
			bytes += sign * cell[i].bytes;
			variance += sign * cell[i].variance;
		}
	}
	free(cell);
	return (struct estimate){(double)bytes, profile_error(p, variance)};
}

/* The blocks [@from, @to) of @site, by an event each; returns the next address. */
static taddr_t run_site(struct profile *p, struct byte_sampler *sampler, const struct site *site,
			struct event ev, int from, int to)
{
	for (int k = from; k < to; k++) {
		if (byte_sampler_take(sampler, site->size)) {
			ev.kind = EVENT_ALLOC;
			ev.size = site->size;
			profile_event(p, &ev);
			ev.kind = EVENT_FREE;
			if (k % 3 == 0)
				profile_event(p, &ev);
		}
		ev.addr += ROUND_UP(site->size + 8, 16ull);
	}
	return ev.addr;
}

/* Half of the blocks of each site, then the other half HALF_MS later. */
static struct figures run_sites(const struct site *site, size_t count, uint64_t r, uint64_t seed)
{
	struct profile_options o = {
		.time_unit = TIME_BYTES, .detailed_freq = 10, .max_snapshots = 100,
		.heap_admin = 8, .alignment = 16, .sample_interval = r,
		.keep_times = true, .keep_history = true,
	};
	struct profile *p = profile_new(&o, 0);
	struct calltree *t = profile_calltree(p);
	struct byte_sampler sampler;
	struct event ev = {.thread = 1, .addr = 0x10000};

	byte_sampler_init(&sampler, r, seed);
	profile_start(p, 0);
	for (size_t i = 0; i < 2 * count; i++) {
		const struct site *at = &site[i % count];
		int half = at->count / 2;

		ev.time_ns = i < count ? 0 : (uint64_t)HALF_MS * 1000000;
		ev.node = calltree_get_child(t, 0, calltree_get_frame(t, 0x1000 + i % count, 0));
		ev.addr = run_site(p, &sampler, at, ev, i < count ? 0 : half,
				   i < count ? half : at->count);
	}
	profile_check(p);
	const struct profile_totals *n = profile_totals(p);
	struct figures f = {
		.live = {(double)n->live_bytes, profile_error(p, n->live_variance)},
		.recent = find_recent(p),
		.blocks = (double)profile_count(p, n->live_blocks),
		.total = (double)n->allocated_bytes,
		.extra = (double)n->extra,
	};
	assert_int_equal(n->unknown_frees, 0);
	profile_free(p);
	return f;
}

enum { LIVE, RECENT, BLOCKS, TOTAL, EXTRA, QUANTITIES };

/* An estimate of a population, and its true value. */
struct quantity {
	double truth;
	struct outcome outcome;
};

/* Number of blocks among the first @count that are not freed. */
static double kept(int count)
{
	return count - (count + 2) / 3;
}

static void find_truths(const struct site *site, size_t count, struct quantity *q)
{
	for (size_t i = 0; i < count; i++) {
		double all = kept(site[i].count), size = (double)site[i].size;

		q[LIVE].truth += all * size;
		q[RECENT].truth += (all - kept(site[i].count / 2)) * size;
		q[BLOCKS].truth += all;
		q[TOTAL].truth += site[i].count * size;
		q[EXTRA].truth += all * (8 + (double)(ROUND_UP(site[i].size, 16ull) - site[i].size));
	}
}

static void run_all(const struct site *site, size_t count, uint64_t r, struct quantity *q)
{
	find_truths(site, count, q);
	for (uint64_t seed = 1; seed <= SAMPLES; seed++) {
		struct figures f = run_sites(site, count, r, seed);
		const struct estimate found[QUANTITIES] = {
			f.live, f.recent, {f.blocks, 0}, {f.total, 0}, {f.extra, 0}};

		for (int i = 0; i < QUANTITIES; i++)
			note(&q[i].outcome, found[i], q[i].truth);
	}
}

/* Whether the mean of all estimates is right if all weights are multiplied by @factor. */
static bool is_unbiased(const struct quantity *q, double factor)
{
	bool is_good = true;

	for (int i = 0; i < QUANTITIES; i++)
		is_good &= bias(&q[i].outcome, q[i].truth, factor) <= 3;
	return is_good;
}

static const struct population {
	const char *name;
	uint64_t r;
	size_t count;
	struct site site[20];
} populations[] = {
	{"one site", 4096, 1, {{64, 12000}}},
	{"odd sizes", 4096, 20,
	 {{1, 9000}, {3, 3000}, {7, 3000}, {13, 2000}, {17, 2000}, {31, 1000}, {33, 1000},
	  {63, 1000}, {65, 1000}, {127, 500}, {129, 500}, {255, 300}, {257, 300}, {511, 200},
	  {1000, 100}, {1023, 100}, {2047, 50}, {4095, 30}, {4097, 30}, {8191, 20}}},
	{"blocks near the interval", 4096, 3, {{2048, 300}, {4096, 200}, {6000, 200}}},
	{"large and small blocks", 65536, 2, {{1000000, 6}, {100, 60000}}},
	{"a short interval", 16, 2, {{3, 3000}, {24, 1000}}},
};

/* Correct weights pass, weights wrong by 3 % do not. */
static void test_unbiased(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(populations); i++) {
		const struct population *p = &populations[i];
		struct quantity q[QUANTITIES] = {0};

		run_all(p->site, p->count, p->r, q);
		if (!is_unbiased(q, 1))
			fail_msg("%s: biased", p->name);
		if (is_unbiased(q, 1.03) || is_unbiased(q, 0.97))
			fail_msg("%s: a bias of 3 %% is not found", p->name);
		for (int k = LIVE; k <= RECENT; k++)
			if (q[k].outcome.within < SAMPLES * 93 / 100)
				fail_msg("%s: %d of %d estimates are within two standard errors",
					 p->name, q[k].outcome.within, SAMPLES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probability), cmocka_unit_test(test_distance),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_weights),     cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_resolution),  cmocka_unit_test(test_unbiased),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
