/*
 * The internals of a profile, for the files that change or check it: profile.c, profile_update.c,
 * profile_quick.c, realloc.c, overlay.c, profile_check.c.
 */
#ifndef PTMEM_PROFILE_PROFILE_INTERNAL_H
#define PTMEM_PROFILE_PROFILE_INTERNAL_H

#include "base/vec.h"
#include "profile/history_update.h"
#include "profile/overlay.h"
#include "profile/pages.h"
#include "profile/profile.h"
#include "profile/snapshots.h"

#define LEAF_IGNORED UINT32_MAX

/* Which table a block was taken from. */
enum held_from { HELD_UNKNOWN, HELD_COUNTED, HELD_IGNORED };

/* A block removed by the first half of a realloc. Its bytes stay counted. */
struct held {
	uint32_t thread;
	enum held_from from;
	struct block block; /* HELD_UNKNOWN: only the address */
};

struct profile {
	struct profile_options options;
	struct calltree *calltree;
	struct blocks *blocks;
	struct blocks *ignored;   /* blocks of ignored leaves: their frees are not unknown ones */
	/* blocks below others; NULL until the program announces its first one */
	struct overlay *overlay;
	struct pages pages;
	VEC(struct held) held;    /* at most one per thread */
	VEC(struct leaf) leaf;    /* [0] is not used */
	uint32_t *leaf_of_node;   /* 0 = not determined yet, LEAF_IGNORED */
	size_t leaf_of_node_count;
	struct snapshots snapshots;
	struct history *history;  /* the first one; NULL unless options.keep_history */
	struct profile_totals totals;
	uint64_t stacks;
	uint64_t time_bytes;      /* t of time unit B */
	uint64_t time_instructions;
	uint64_t start_ns, first_ns, now_ns;
	uint64_t time_ms;         /* = (now_ns - first_ns) / 1000000 */
	uint64_t next_ms_ns;      /* when it grows; 0 before the first event */
	uint64_t peak_limit;      /* more live bytes are a peak, of all time or of a history */
	bool has_first;           /* first_ns: the clock value that counts as 0 */
	/* Bytes of blocks removed by a realloc at an ignored site: counted forever (2.8). */
	uint64_t lost_bytes, lost_extra, lost_blocks;
	uint64_t counted_bytes, counted_blocks; /* bytes of EVENT_COUNT */
};

static inline uint64_t profile_block_extra(const struct profile *p, const struct block *block)
{
	return p->options.heap_admin + block->capacity - block->size;
}

static inline struct weight profile_weigh(const struct profile *p, const struct block *block)
{
	uint64_t extra = profile_block_extra(p, block);

	if (block->weighted)
		return estimate_weigh_marked(block, extra,
					     p->options.sample_interval ? ESTIMATE_UNIT : 1);
	if (p->options.sample_interval)
		return estimate_weigh(p->options.sample_interval, block, extra);
	return (struct weight){.bytes = block->size, .extra = extra, .blocks = 1, .calls = 1};
}

/* The time since profile_start. */
static inline uint64_t profile_age(const struct profile *p)
{
	return p->now_ns > p->start_ns ? p->now_ns - p->start_ns : 0;
}

static inline uint64_t profile_granule(const struct profile *p)
{
	return p->options.granule ? p->options.granule : PAGE_SIZE_MIN;
}

#endif
