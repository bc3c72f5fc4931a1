/*
 * Changes to a profile by events: time, leaves, totals, blocks, snapshot attempts. For profile.c,
 * profile_quick.c and realloc.c. What nearly every event does is inline: a call takes a measurable
 * part of an event's time.
 */
#ifndef PTMEM_PROFILE_PROFILE_UPDATE_H
#define PTMEM_PROFILE_PROFILE_UPDATE_H

#include "profile/capacity.h"
#include "profile/profile_internal.h"

/* Time for blocks: microseconds since the first event. */
static inline uint64_t clock_us(const struct profile *p)
{
	return (p->now_ns - p->first_ns) / 1000;
}

/* profile_update.c: another millisecond has begun, or it is the first event at all. */
void profile_pass_ms(struct profile *p);

/* Time never decreases here, whatever the order of events of several threads. */
static inline void pass_time(struct profile *p, uint64_t time_ns)
{
	if (time_ns > p->now_ns)
		p->now_ns = time_ns;
	if (p->now_ns >= p->next_ms_ns)
		profile_pass_ms(p);
}

static inline void read_time(struct profile *p, uint64_t time_ns)
{
	pass_time(p, time_ns);
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

static inline struct snapshot state_now(const struct profile *p)
{
	bool heap = !p->options.no_heap;
	return (struct snapshot){
		.time = time_in_unit(p),
		.heap = heap ? p->totals.live_bytes : 0,
		.extra = heap ? p->totals.extra : 0,
		.stacks = p->stacks,
	};
}

/* Leaves as snapshots see them: none without the heap. */
static inline uint32_t leaves_shown(const struct profile *p)
{
	return p->options.no_heap ? 0 : (uint32_t)p->leaf.count - 1;
}

/* Most attempts have no effect: that much is tested without a call. */
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

/* The same for heap events, which --heap=no keeps out of the snapshots. */
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

/* ---- profile_update.c ---- */

/* Creates the leaf of @node; LEAF_IGNORED if its blocks do not count. */
uint32_t profile_new_leaf(struct profile *p, uint32_t node);

/* The live bytes are a new maximum. */
void profile_raise_peak(struct profile *p);

/* Removes the block at @addr from whichever table it is in. Its bytes stay counted. */
struct held profile_hold(struct profile *p, taddr_t addr);

/*
 * Add a block that counts, or one that does not, to its table. The free of a counted block that was
 * live at the address must have been missed: it is subtracted, and counts as replaced.
 */
void profile_add_block(struct profile *p, const struct block *block);
void profile_add_ignored(struct profile *p, taddr_t addr, uint64_t size);
void profile_free_unseen(struct profile *p, const struct block *block);

/* The rows "allocate" and "free" of doc/massif.md 2.2. */
void profile_alloc(struct profile *p, const struct event *ev);
/* @thread released it. */
void profile_free_block(struct profile *p, const struct block *block, uint32_t thread);

/* ---- inline ---- */

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
	for (struct history *h = p->history; h; h = h->next)
		history_save(h, index, leaf);
	return leaf;
}

static inline void count_in(struct profile *p, uint32_t leaf, struct weight w)
{
	struct leaf *l = change_leaf(p, leaf);
	l->live_bytes += w.bytes;
	l->live_blocks += w.blocks;
	l->total_bytes += w.bytes;
	l->total_blocks += w.blocks;
	l->calls += w.calls;
	p->totals.live_bytes += w.bytes;
	p->totals.live_blocks += w.blocks;
	p->totals.extra += w.extra;
	if (w.variance) {
		l->live_variance += w.variance;
		l->total_variance += w.variance;
		p->totals.live_variance += w.variance;
		p->totals.allocated_variance += w.variance;
	}
}

static inline void count_out(struct profile *p, uint32_t leaf, struct weight w)
{
	struct leaf *l = change_leaf(p, leaf);
	l->live_bytes -= w.bytes;
	l->live_blocks -= w.blocks;
	p->totals.live_bytes -= w.bytes;
	p->totals.live_blocks -= w.blocks;
	p->totals.extra -= w.extra;
	if (w.variance) {
		l->live_variance -= w.variance;
		p->totals.live_variance -= w.variance;
	}
}

/* @bytes of whole pages that one call mapped. */
static inline struct weight weigh_pages(const struct profile *p, uint64_t bytes)
{
	return (struct weight){
		.bytes = bytes, .blocks = bytes / profile_granule(p), .calls = 1};
}

static inline void pass_bytes(struct profile *p, uint64_t bytes)
{
	if (!p->options.no_heap)
		p->time_bytes += bytes;
}

static inline void note_peak(struct profile *p)
{
	if (p->totals.live_bytes > p->peak_limit)
		profile_raise_peak(p);
}

/* Admin and slop of a block without a requested alignment. */
static inline uint64_t plain_extra(const struct profile *p, uint64_t size)
{
	return p->options.heap_admin + capacity_of(size, p->options.alignment) - size;
}

/* A block without a requested alignment and without sampling. */
static inline struct weight weigh_plain(const struct profile *p, uint64_t size)
{
	return (struct weight){
		.bytes = size, .extra = plain_extra(p, size), .blocks = 1, .calls = 1};
}

static inline void count_alloc(struct profile *p, uint32_t leaf, struct weight w)
{
	count_in(p, leaf, w);
	pass_bytes(p, w.bytes + w.extra);
	p->totals.samples += p->options.sample_interval != 0;
	p->totals.allocations += w.blocks;
	p->totals.allocated_bytes += w.bytes;
	note_peak(p);
	try_heap_normal(p, "  alloc");
}

/* @block, with weight @w, for histories. */
static inline struct history_block history_block_of(const struct block *block, uint32_t thread,
						    struct weight w)
{
	return (struct history_block){.leaf = block->leaf, .thread = thread, .addr = block->addr,
				      .size = block->size, .bytes = w.bytes, .blocks = w.blocks,
				      .variance = w.variance, .new_bytes = w.bytes};
}

/* Update the histories for count_alloc, count_free. */
static inline void remember_alloc(struct profile *p, const struct history_block *b)
{
	for (struct history *h = p->history; h; h = h->next)
		history_alloc(h, b, &p->leaf.data[b->leaf], p->totals.live_bytes, p->time_ms);
}

static inline void remember_release(struct profile *p, const struct history_block *b,
				    uint64_t born_us)
{
	for (struct history *h = p->history; h; h = h->next)
		history_release(h, b, born_us, clock_us(p));
}

static inline void remember_resize(struct profile *p, const struct history_block *b,
				   taddr_t old_addr)
{
	for (struct history *h = p->history; h; h = h->next)
		history_resize(h, b, old_addr);
}

static inline void count_free(struct profile *p, uint32_t leaf, struct weight w)
{
	try_heap_peak(p, "de-PEAK");
	count_out(p, leaf, w);
	pass_bytes(p, w.bytes + w.extra);
	p->totals.frees += w.blocks;
	try_heap_normal(p, "dealloc");
}

#endif
