/* See byte_sampler.h. The generator is splitmix64: one addition, then a hash of the sum. */
#include "base/byte_sampler.h"

#include <math.h>

#define STEP UINT64_C(0x9e3779b97f4a7c15) /* odd, 2^64 / golden ratio */

static uint64_t next_random(struct byte_sampler *s)
{
	uint64_t x = s->state += STEP;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The uniform number has 53 bits and is not 0, so a distance is at most 36.8 intervals. */
uint64_t byte_sampler_draw(struct byte_sampler *s)
{
	double uniform = (double)((next_random(s) >> 11) + 1) * 0x1p-53;

	return (uint64_t)(-log(uniform) * (double)s->interval);
}

void byte_sampler_init(struct byte_sampler *s, uint64_t interval, uint64_t seed)
{
	*s = (struct byte_sampler){.interval = interval, .state = seed};
	s->state = next_random(s); /* similar seeds must give unrelated sequences */
	s->left = byte_sampler_draw(s);
}

bool byte_sampler_take(struct byte_sampler *s, uint64_t size)
{
	if (size <= s->left) {
		s->left -= size;
		return false;
	}
	s->left = byte_sampler_draw(s);
	return true;
}
