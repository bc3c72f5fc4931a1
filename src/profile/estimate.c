#include "profile/estimate.h"

#include <math.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"

#define CERTAIN 40.0 /* exp(-40) is below half a unit in the last place at 1 */

/*
 * A number in (0, 1) derived from the offset of @addr in its page, which is the same in each run of
 * a program, while the page is not. Maps offsets to 256 different numbers, in an order that depends
 * on @factor (odd).
 */
static double offset_fraction(taddr_t addr, uint64_t factor)
{
	return ((double)((addr >> 4) * factor & 255) + 0.5) / 256;
}

/* An alignment in a file may be anything: keep the slop finite. */
static uint64_t round_estimate(double estimate, double fraction)
{
	return (uint64_t)(fmin(estimate, 0x1p62) + fraction);
}

#define MARKED_MAX (UINT64_C(1) << 40) /* more is no size, and sums fit into 64 bits */

struct weight estimate_weigh_marked(const struct block *block, uint64_t extra, uint64_t unit)
{
	uint64_t bytes = MIN(block->weighted, MARKED_MAX), size = MAX(block->size, UINT64_C(1));
	uint64_t blocks = MAX((bytes + size / 2) / size, UINT64_C(1));

	extra = MIN(extra, MARKED_MAX / blocks) * blocks;
	return (struct weight){
		.bytes = bytes, .extra = extra, .blocks = blocks * unit, .calls = blocks * unit};
}

struct weight estimate_weigh(uint64_t interval, const struct block *block, uint64_t extra)
{
	double size = (double)block->size, in_units = size / (double)interval;
	double x = size / (double)(interval << block->sample_shift);

	if (x > CERTAIN || block->size == 0)
		return (struct weight){
			.bytes = block->size,
			.extra = extra,
			.blocks = ESTIMATE_UNIT,
			.calls = ESTIMATE_UNIT,
		};
	double p = -expm1(-x);
	uint64_t blocks = (uint64_t)((double)ESTIMATE_UNIT / p + 0.5);
	return (struct weight){
		.bytes = round_estimate(size / p, offset_fraction(block->addr, 167)),
		.extra = round_estimate((double)extra / p, offset_fraction(block->addr, 59)),
		.blocks = blocks,
		.calls = blocks,
		.variance = (uint64_t)((double)ESTIMATE_VARIANCE_UNIT * in_units * in_units *
					       (1 - p) / (p * p) +
				       0.5),
	};
}

double estimate_error(uint64_t interval, uint64_t variance)
{
	return (double)interval * sqrt((double)variance / (double)ESTIMATE_VARIANCE_UNIT);
}

double estimate_error_bound(uint64_t interval, uint64_t bytes)
{
	return sqrt(estimate_variance_bound(interval, bytes));
}

double estimate_variance_bound(uint64_t interval, uint64_t bytes)
{
	return (double)interval * (double)bytes;
}

bool estimate_is_below_resolution(double bytes, double error)
{
	return 3 * error * error > bytes * bytes * (1 + 1e-9);
}

char *sampling_range(uint64_t interval, uint64_t longest)
{
	char from[AMOUNT_SIZE], to[AMOUNT_SIZE];

	amount_bytes((double)interval, from);
	if (longest <= interval)
		return xstrdup(from);
	return xasprintf("%s to %s", from, amount_bytes((double)longest, to));
}

char *sampling_note(uint64_t interval, uint64_t longest)
{
	if (!interval)
		return xstrdup("");
	_cleanup_free_ char *range = sampling_range(interval, longest);

	return xasprintf(" (estimate, sampled every %s)", range);
}
