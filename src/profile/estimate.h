/*
 * The weight of a sampled block. With marks every R bytes on average (base/byte_sampler.h) a block
 * of s bytes is a sample with probability p = 1 - exp(-s / R), so it represents
 *
 *	s / p  bytes        1 / p  blocks        extra / p  bytes of extra
 *
 * Sums of these are unbiased estimates of the sums over all blocks. The variance of the bytes is
 * estimated by the sum of s^2 (1 - p) / p^2, which is at most R * s / p. Hence the standard error
 * of B bytes is at most sqrt(R * B), and nearly that where blocks are much smaller than R.
 *
 * R may change while the program runs: that of a block is the smallest one, shifted by the block's
 * sample_shift. Each block then has the probability of its own R, and the sums stay unbiased.
 * Variances are in units of the smallest R for all blocks.
 *
 * Weights depend only on the block and R, so a release subtracts exactly what the allocation added.
 * They are integers:
 *
 *	bytes, extra   rounded up or down, depending on the block's offset in its page. Each error
 *	               is below 1, in either direction, so the errors of many blocks cancel,
 *	               whatever R is.
 *	blocks         in units of 1 / ESTIMATE_UNIT, since weights near 1 could not be rounded to
 *	               whole numbers: one address may be used for all blocks of a program. Rounding
 *	               errs by at most 0.00013 of a block.
 *	variance       in units of R^2 / ESTIMATE_VARIANCE_UNIT, R being the smallest: at most
 *	               4^sample_shift * the unit a block
 */
#ifndef PTMEM_PROFILE_ESTIMATE_H
#define PTMEM_PROFILE_ESTIMATE_H

#include "base/types.h"
#include "profile/blocks.h"

#define ESTIMATE_UNIT_BITS 12
#define ESTIMATE_UNIT (UINT64_C(1) << ESTIMATE_UNIT_BITS)
#define ESTIMATE_VARIANCE_UNIT (UINT64_C(1) << 20)

#define ESTIMATE_SHIFT_MAX 10u
#define ESTIMATE_INTERVAL_MAX (UINT64_C(1) << 40) /* weights and their sums fit into 64 bits */

/* What blocks add to a profile. */
struct weight {
	uint64_t bytes, extra;
	uint64_t blocks;   /* fractional units if blocks are samples */
	uint64_t calls;    /* allocations; in the same units */
	uint64_t variance;
};

/*
 * The weight of sampled block @block, whose admin and slop are @extra bytes. @interval: the
 * smallest R.
 */
struct weight estimate_weigh(uint64_t interval, const struct block *block, uint64_t extra);

/*
 * The weight of a block that is a sample of the program's own (block.weighted): it stands for so
 * many bytes, and for weighted / size blocks, rounded, at least one. @unit: of the number of
 * blocks, 1 or ESTIMATE_UNIT. The program's interval is not known, so there is no variance.
 */
struct weight estimate_weigh_marked(const struct block *block, uint64_t extra, uint64_t unit);

/* The weight of any @block. @interval: 0 if blocks are not samples. */
static inline struct weight estimate_block(uint64_t interval, const struct block *block,
					   uint64_t extra)
{
	if (block->weighted)
		return estimate_weigh_marked(block, extra, interval ? ESTIMATE_UNIT : 1);
	if (interval)
		return estimate_weigh(interval, block, extra);
	return (struct weight){.bytes = block->size, .extra = extra, .blocks = 1, .calls = 1};
}

/* Converts units of blocks or calls to a whole number. */
static inline uint64_t estimate_count(uint64_t units)
{
	return (units + ESTIMATE_UNIT / 2) >> ESTIMATE_UNIT_BITS;
}

/* The standard error, in bytes, of an estimate with summed variance @variance. */
double estimate_error(uint64_t interval, uint64_t variance);

/* The same if only the estimate is known: an upper bound; and its square. */
double estimate_error_bound(uint64_t interval, uint64_t bytes);
double estimate_variance_bound(uint64_t interval, uint64_t bytes);

/*
 * Whether an estimate of @bytes is too uncertain: its error is larger than that of three small
 * samples. Fewer samples suffice only if their blocks are so large that the error is smaller.
 */
bool estimate_is_below_resolution(double bytes, double error);

/* The note for estimates in reports. */

/* "512.0 KiB", or, where --budget lengthened it, "512.0 KiB to 4.0 MiB". The caller frees it. */
char *sampling_range(uint64_t interval, uint64_t longest);

/* " (estimate, sampled every 512.0 KiB)", or "" if @interval is 0. The caller frees it. */
char *sampling_note(uint64_t interval, uint64_t longest);

#endif
