/*
 * Poisson sampling of a stream of bytes: marks are placed at random, on average one every
 * `interval` bytes, and an allocation that receives a mark is a sample.
 *
 *	bytes    ------------|-----------------------|---|--------->
 *	blocks   [  a  ][  b  ][ c ][  d  ][ e ][   f   ][  g  ]      samples: b, f
 *
 * A block of s bytes is a sample with probability 1 - exp(-s / interval), whatever came before it.
 * A block of no bytes never is. Distances are rounded down to whole bytes, which changes none of
 * these probabilities: a real distance is below s exactly if the rounded one is.
 *
 * The distribution has no memory. So several samplers (one for each thread) are together like one,
 * a new sampler may begin at any byte, and the part of a block after its mark does not count.
 */
#ifndef PTMEM_BASE_BYTE_SAMPLER_H
#define PTMEM_BASE_BYTE_SAMPLER_H

#include "base/types.h"

struct byte_sampler {
	uint64_t interval; /* mean distance of marks, bytes; at least 1 */
	uint64_t state;    /* of the generator */
	uint64_t left;     /* bytes that receive no mark any more */
};

/* Samplers of equal @interval and @seed place equal marks. */
void byte_sampler_init(struct byte_sampler *s, uint64_t interval, uint64_t seed);

/* The distance to the next mark: exponential, rounded down. */
uint64_t byte_sampler_draw(struct byte_sampler *s);

/* Passes a block of @size bytes; whether it is a sample. */
bool byte_sampler_take(struct byte_sampler *s, uint64_t size);

#endif
