/*
 * Poisson sampling of a stream of bytes: marks are placed at random, on average one every
 * `interval` bytes, and an allocation that receives a mark is a sample.
 *
 *	bytes    ------------|-----------------------|---|--------->
 *	blocks   [  a  ][  b  ][ c ][  d  ][ e ][   f   ][  g  ]      samples: b, f
 *
 * A block of s bytes is a sample with probability 1 - exp(-s / interval), independently of all
 * others. An empty block never is. Distances are rounded down to whole bytes, which does not change
 * these probabilities: the exact distance is below s if and only if the rounded one is.
 *
 * The distribution is memoryless. So several samplers (one for each thread) are equivalent to one,
 * a new sampler may start at any byte, and the rest of a block after its mark is skipped.
 */
#ifndef PTMEM_BASE_BYTE_SAMPLER_H
#define PTMEM_BASE_BYTE_SAMPLER_H

#include "base/types.h"

struct byte_sampler {
	uint64_t interval; /* mean distance of marks, bytes; at least 1 */
	uint64_t state;    /* state of the generator */
	uint64_t left;     /* bytes before the next mark */
};

/* Samplers with equal @interval and @seed place the same marks. */
void byte_sampler_init(struct byte_sampler *s, uint64_t interval, uint64_t seed);

/* The distance to the next mark: exponential, rounded down. */
uint64_t byte_sampler_draw(struct byte_sampler *s);

/* Advances over a block of @size bytes. Returns whether it is a sample. */
bool byte_sampler_take(struct byte_sampler *s, uint64_t size);

#endif
