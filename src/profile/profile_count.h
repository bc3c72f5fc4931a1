/*
 * What every event of the heap does to a profile, inline: time, leaves, totals, attempts of
 * snapshots. For profile.c and profile_quick.c only.
 */
#ifndef PTMEM_PROFILE_PROFILE_COUNT_H
#define PTMEM_PROFILE_PROFILE_COUNT_H

#include "profile/capacity.h"
#include "profile/profile_internal.h"

/* Time never runs backwards here, whatever order events of several threads come in. */
static inline void read_time(struct profile *p, uint64_t time_ns)
{
	if (!p->has_first) {
		p->has_first = true;
		p->first_ns = p->now_ns = time_ns;
	}
	if (time_ns > p->now_ns) { /* records of a ring come many at a time */
		p->now_ns = time_ns;
		p->time_ms = (time_ns - p->first_ns) / 1000000;
	}
	if (p->options.time_unit == TIME_INSTRUCTIONS) {
		uint64_t now = p->options.instructions(p->options.instructions_ctx);
		p->time_instructions = MAX(p->time_instructions, now);
	}
}

static inline uint64_t time_in_unit(const struct profile *p)
{
	switch (p->options.time_unit) {
	case TIME_BYTES:
		return p->time_bytes;
	case TIME_INSTRUCTIONS:
		return p->time_instructions;
	default:
		return p->time_ms;
	}
}

static struct snapshot state_now(const struct profile *p)
{
	bool heap = !p->options.no_heap;
	return (struct snapshot){
		.time = time_in_unit(p),
		.heap = heap ? p->totals.live_bytes : 0,
		.extra = heap ? p->totals.extra : 0,
		.stacks = p->stacks,
	};
}

/* Leaves as snapshots see them: none if the heap is not wanted. */
static uint32_t leaves_shown(const struct profile *p)
{
	return p->options.no_heap ? 0 : profile_leaf_count(p);
}

/* Most attempts are in vain: that much is found out without a call. */
static inline void try_normal(struct profile *p, const char *what)
{
	if (time_in_unit(p) < p->snapshots.earliest)
		return;
	struct snapshot now = state_now(p);
	snapshots_try_normal(&p->snapshots, &now, leaves_shown(p), what);
}

static inline void try_peak(struct profile *p, const char *what)
{
	uint64_t heap = p->options.no_heap ? 0 : p->totals.live_bytes + p->totals.extra;
	if (heap + p->stacks <= p->snapshots.peak_limit)
		return;
	struct snapshot now = state_now(p);
	snapshots_try_peak(&p->snapshots, &now, leaves_shown(p), what);
}

/* As above for events of the heap, which --heap=no keeps out of the snapshots. */
static inline void try_heap_normal(struct profile *p, const char *what)
{
	if (!p->options.no_heap)
		try_normal(p, what);
}

static inline void try_heap_peak(struct profile *p, const char *what)
{
	if (!p->options.no_heap)
		try_peak(p, what);
}

uint32_t profile_new_leaf(struct profile *p, uint32_t node); /* which has none yet */

static inline uint32_t get_leaf(struct profile *p, uint32_t node)
{
	uint32_t leaf = node < p->leaf_of_node_count ? p->leaf_of_node[node] : 0;
	return leaf ? leaf : profile_new_leaf(p, node);
}

static inline struct leaf *change_leaf(struct profile *p, uint32_t index)
{
	struct leaf *leaf = &p->leaf.data[index];
	if (leaf->epoch < p->snapshots.epoch && !p->options.no_heap)
		snapshots_save_leaf(&p->snapshots, leaf, index);
	return leaf;
}

static inline void count_in(struct profile *p, uint32_t leaf, uint64_t bytes, uint64_t blocks,
			    uint64_t extra)
{
	struct leaf *l = change_leaf(p, leaf);
	l->live_bytes += bytes;
	l->live_blocks += blocks;
	l->total_bytes += bytes;
	l->total_blocks += blocks;
	l->calls++;
	p->totals.live_bytes += bytes;
	p->totals.live_blocks += blocks;
	p->totals.extra += extra;
}

static inline void count_out(struct profile *p, uint32_t leaf, uint64_t bytes, uint64_t blocks,
			     uint64_t extra)
{
	struct leaf *l = change_leaf(p, leaf);
	l->live_bytes -= bytes;
	l->live_blocks -= blocks;
	p->totals.live_bytes -= bytes;
	p->totals.live_blocks -= blocks;
	p->totals.extra -= extra;
}

static inline void pass_bytes(struct profile *p, uint64_t bytes)
{
	if (!p->options.no_heap)
		p->time_bytes += bytes;
}

static inline void note_peak(struct profile *p)
{
	if (p->totals.live_bytes > p->totals.peak_bytes)
		profile_note_peak(p);
}

/* Admin and slop of a block for which no alignment was asked. */
static inline uint64_t plain_extra(const struct profile *p, uint64_t size)
{
	return p->options.heap_admin + capacity_of(size, p->options.alignment) - size;
}

static inline void count_alloc(struct profile *p, uint32_t leaf, uint64_t size, uint64_t extra)
{
	count_in(p, leaf, size, 1, extra);
	pass_bytes(p, size + extra);
	p->totals.allocations++;
	p->totals.allocated_bytes += size;
	note_peak(p);
	try_heap_normal(p, "  alloc");
}

static inline void count_free(struct profile *p, uint32_t leaf, uint64_t size, uint64_t extra)
{
	try_heap_peak(p, "de-PEAK");
	count_out(p, leaf, size, 1, extra);
	pass_bytes(p, size + extra);
	p->totals.frees++;
	try_heap_normal(p, "dealloc");
}

#endif
