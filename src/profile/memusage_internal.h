/* Shared by memusage.c (heap calls, stacks) and memusage_maps.c (mappings) only. */
#ifndef PTMEM_PROFILE_MEMUSAGE_INTERNAL_H
#define PTMEM_PROFILE_MEMUSAGE_INTERNAL_H

#include "base/vec.h"
#include "profile/blocks.h"
#include "profile/estimate.h"
#include "profile/memusage.h"
#include "profile/pages.h"

enum { PLAIN, ALIGNED }; /* the values of a block's leaf: of the memalign family, or not */

struct thread_base {
	uint32_t thread;
	taddr_t base;        /* 0 = not seen on its own stack yet */
	uint64_t depth;      /* its last value */
	taddr_t low;         /* its own stack: [low, low + size] */
	uint64_t size;       /* 0 = unknown */
};

/* A block that its thread is reallocating. */
struct resized {
	uint32_t thread;
	bool is_known;
	struct block block;
};

struct memusage {
	struct memusage_numbers numbers;
	uint64_t sample_interval; /* 0: all blocks are known */
	struct memusage_sink sink; /* add: NULL = none */
	struct blocks *blocks;
	struct pages maps;
	VEC(struct thread_base) bases;
	VEC(struct resized) resized;
	size_t last_base; /* index of the last one found */
	uint64_t now_ns;  /* time of the last event */
	bool is_over;     /* memusage prints now, and stops counting */
};

/* A failed call's size counts, too, unless no object can be that large: the sums would wrap. */
static inline uint64_t countable(uint64_t size)
{
	return size > PTRDIFF_MAX ? 0 : size;
}

static inline void count_bytes(struct memusage *m, enum memusage_row row, uint64_t bytes)
{
	m->numbers.row[row].memory += bytes;
	if (row != MEMUSAGE_FREE && row != MEMUSAGE_MUNMAP)
		m->numbers.total += bytes;
}

/* The weight of a block; a failed call (address 0) has its own size. */
static inline struct weight memusage_weigh(const struct memusage *m, const struct block *block)
{
	if (m->sample_interval && block->addr)
		return estimate_weigh(m->sample_interval, block, 0);
	return (struct weight){.bytes = block->size,
			       .calls = m->sample_interval ? ESTIMATE_UNIT : 1};
}

/* @calls: in units (estimate.h) if blocks are samples. */
static inline void count_size(struct memusage *m, uint64_t size, uint64_t calls)
{
	struct memusage_numbers *n = &m->numbers;
	n->histogram_calls += calls;
	if (size / MEMUSAGE_BUCKET < MEMUSAGE_BUCKETS)
		n->histogram[size / MEMUSAGE_BUCKET] += calls;
	else
		n->large += calls;
}

#endif
