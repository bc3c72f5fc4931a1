/*
 * The inside of a profile, for the files that change or check it: profile.c, profile_quick.c,
 * profile_check.c, history.c, overlay.c, snapshots.c. What nearly every event does is inline: a
 * call takes a measurable part of an event's time.
 */
#ifndef PTMEM_PROFILE_PROFILE_UPDATE_H
#define PTMEM_PROFILE_PROFILE_UPDATE_H

#include "base/alloc.h"
#include "base/types.h"
#include "profile/blocks.h"
#include "profile/event.h"
#include "profile/groups.h"
#include "profile/history.h"
#include "profile/pages.h"
#include "profile/profile.h"

/*
 * The changes that events make to a history. Inline functions handle what nearly every event
 * does.
 */

#define LAST_FILTER 1024u /* a power of two */

/* -- history.c -- */

/* @next: another one of the same profile, owned by the new one from now on; or NULL. */
struct history *history_new(struct history *next);
struct history *history_clone(const struct history *h); /* NULL gives NULL */
void history_free(struct history *h);                   /* may be NULL */

/* Leaf @index was created, without values. */
void history_add_leaf(struct history *h, uint32_t index);
/* @block is from before the profile; @leaf and @live_bytes include it. */
void history_earlier(struct history *h, const struct block *block, const struct leaf *leaf,
		     uint64_t live_bytes);
/* Time is @now_ms, beyond the current interval; @totals are those at its end. */
void history_advance(struct history *h, uint64_t now_ms, const struct profile_totals *totals);
/* Begins again at @now_ms, which is later than all blocks. @leaf: all leaves, by index. */
void history_restart(struct history *h, const struct profile_totals *t, const struct leaf *leaf,
		     uint64_t now_ms);
/* Completes the current interval's cells and totals, and continues it. */
void history_sync(struct history *h, const struct profile_totals *totals);
/* The index of thread @id, which is not that of the last event. */
uint32_t history_switch_thread(struct history *h, uint32_t id);
/* The last block of another thread than the releasing one may be at @addr. */
void history_forget_last(struct history *h, taddr_t addr);
/* Without last_filter: the same for the only thread, if there is one. */
void history_forget_all(struct history *h, taddr_t addr);
/* The last block of thread @index is now at @addr. */
void history_set_last(struct history *h, uint32_t index, taddr_t addr);
void history_touch(struct history *h, struct history_leaf *leaf);
void history_switch_share(struct history *h, struct history_leaf *leaf, uint32_t thread);
void histogram_extend(struct histogram *g, uint8_t bucket);

/* -- inline -- */

static inline void histogram_add(struct histogram *g, uint64_t value, uint64_t blocks)
{
	uint8_t bucket = (uint8_t)(63 - __builtin_clzll(value << 1 | 1)); /* values have 63 bits */
	uint8_t i = (uint8_t)(bucket - g->first);

	if (i >= g->size) {
		histogram_extend(g, bucket);
		i = (uint8_t)(bucket - g->first);
	}
	g->count[i] += blocks;
}

/* Called before a leaf's live bytes change: saves its values at the peak. */
static inline void history_save(struct history *h, uint32_t index, const struct leaf *leaf)
{
	struct history_leaf *l = &h->leaf.data[index];

	if (l->peak_epoch == h->peak_epoch)
		return;
	l->peak_epoch = h->peak_epoch;
	l->peak_bytes = leaf->live_bytes;
	l->peak_blocks = leaf->live_blocks;
	l->peak_variance = leaf->live_variance;
}

static inline void note_touched(struct history *h, struct history_leaf *l)
{
	if (l->touched != h->mark)
		history_touch(h, l);
}

static inline uint32_t find_thread(struct history *h, uint32_t id)
{
	return h->thread.count && h->thread.data[h->last_thread].id == id ?
		       h->last_thread :
		       history_switch_thread(h, id);
}

static inline void note_most(struct history *h, struct history_leaf *l, uint64_t leaf_bytes,
			     uint64_t live_bytes, uint64_t now_ms)
{
	if (leaf_bytes > l->max_bytes) {
		l->max_bytes = leaf_bytes;
		l->max_ms = (uint32_t)(now_ms - h->base_ms);
	}
	if (live_bytes > h->most_bytes)
		h->most_bytes = live_bytes;
}

/* A block that an event allocates or releases. */
struct history_block {
	uint32_t leaf, thread; /* id of the thread of the event; 0 = unknown */
	uint32_t releaser;     /* of a pair: id of the releasing thread */
	taddr_t addr;
	uint64_t size;         /* the real size, whatever it counts */
	uint64_t bytes, blocks, variance; /* the size that counts */
	uint64_t new_bytes;    /* of an allocation: what it adds to the bytes ever allocated */
	uint64_t lived_us;     /* of a pair */
	bool is_resized;       /* released by a realloc: no end of a lifetime */
};

/* Counts @b in histogram and shares; returns its leaf. @thread: an index. */
static inline struct history_leaf *count_request(struct history *h, const struct history_block *b,
						 uint32_t thread)
{
	struct history_leaf *l = &h->leaf.data[b->leaf];

	note_touched(h, l);
	histogram_add(&l->sizes, b->size, b->blocks);
	if (l->thread != thread)
		history_switch_share(h, l, thread);
	l->thread_blocks += b->blocks;
	l->thread_bytes += b->new_bytes;
	l->thread_variance += b->variance;
	return l;
}

/* @leaf and @live_bytes include the block. */
static inline void history_alloc(struct history *h, const struct history_block *b,
				 const struct leaf *leaf, uint64_t live_bytes, uint64_t now_ms)
{
	uint32_t thread = find_thread(h, b->thread);
	struct history_leaf *l = count_request(h, b, thread);

	l->born_bytes += b->bytes;
	l->born_blocks += b->blocks;
	l->born_variance += b->variance;
	if (leaf->live_bytes > l->max_bytes)
		l->max_variance = leaf->live_variance;
	note_most(h, l, leaf->live_bytes, live_bytes, now_ms);
	if (h->last_filter)
		history_set_last(h, thread, b->addr);
	else
		h->thread.data[thread].last = b->addr;
}

/* Block @b resulted from a resize of the one at @old_addr. */
static inline void history_resize(struct history *h, const struct history_block *b,
				  taddr_t old_addr)
{
	struct history_leaf *l = &h->leaf.data[b->leaf];

	l->reallocs += b->blocks;
	l->moved += b->addr != old_addr ? b->blocks : 0;
}

/* Whether the block is the thread's last allocated one; clears that. */
static inline bool take_last(struct history *h, const struct history_block *b)
{
	if (!b->thread && !h->last_filter) {
		history_forget_all(h, b->addr);
		return false;
	}
	uint32_t thread = b->thread ? find_thread(h, b->thread) : h->last_thread;
	bool is_last = b->thread && h->thread.data[thread].last == b->addr;

	if (h->last_filter)
		history_forget_last(h, b->addr);
	else if (is_last)
		h->thread.data[thread].last = 0;
	return is_last;
}

static inline void count_life(struct history_leaf *l, uint64_t us, uint64_t blocks)
{
	uint64_t sum;

	histogram_add(&l->lifetimes, us, blocks);
	if (__builtin_mul_overflow(us, blocks, &sum) ||
	    __builtin_add_overflow(sum, l->lived_us, &l->lived_us))
		l->lived_us = UINT64_MAX;
}

/* @born_us: when the block was allocated. */
static inline void history_release(struct history *h, const struct history_block *b,
				   uint64_t born_us, uint64_t now_us)
{
	struct history_leaf *l = &h->leaf.data[b->leaf];
	uint64_t born_ms = born_us / 1000;
	uint32_t born = born_ms < h->base_ms ?
				CELL_BEFORE :
				(uint32_t)((born_ms - h->base_ms) >> h->shift);

	note_touched(h, l);
	if (!b->is_resized)
		count_life(l, now_us - MIN(born_us, now_us), b->blocks);
	l->temporary += take_last(h, b) ? b->blocks : 0;
	if (born >= h->current && born != CELL_BEFORE) {
		l->born_bytes -= b->bytes;
		l->born_blocks -= b->blocks;
		l->born_variance -= b->variance;
		return;
	}
	const struct cell cell = {b->leaf, (uint16_t)born, (uint16_t)h->current, b->blocks,
				  b->bytes, b->variance};

	cells_add(&h->cells, &cell);
}

/* A block that is allocated by one event and released by the next one. */
static inline void history_pair(struct history *h, const struct history_block *b,
				const struct leaf *leaf, uint64_t live_bytes, uint64_t now_ms)
{
	uint32_t thread = find_thread(h, b->thread);
	struct history_leaf *l = count_request(h, b, thread);

	note_most(h, l, leaf->live_bytes + b->bytes, live_bytes, now_ms);
	count_life(l, b->lived_us, b->blocks);
	l->temporary += b->thread == b->releaser ? b->blocks : 0;
	if (h->last_filter)
		history_set_last(h, thread, 0);
	else
		h->thread.data[thread].last = 0;
	if (b->thread != b->releaser)
		find_thread(h, b->releaser); /* assigns its number now, as with single events */
}

/*
 * Several blocks at one address. A program that announces the blocks of its own allocator
 * (FUNCTION_REQUEST) gets their memory from malloc, for example: then its first block often has the
 * same address as the malloc'ed one. Both are live, as in Massif (doc/massif.md 2.12): the newest
 * is found first, and a release ends the newest.
 *
 *	tables of the profile    the newest block of each address
 *	covered                  the older ones, by address, newest first
 *
 * This is created when the program announces its first block. From then on a malloc'ed block, too,
 * covers a live one at its address: a real free may have ended the announced block instead of the
 * real one.
 */

struct profile;

struct covered {
	struct block block;
	uint32_t below;       /* index of the next older one; 0 = none */
	bool is_counted;      /* false: it belongs to an ignored site */
	bool is_request;
	bool is_used;
};

struct overlay {
	struct blocks *request; /* the addresses whose newest block was announced */
	struct blocks *top;     /* by address: the index of the newest covered block, as size */
	VEC(struct covered) list; /* [0] is not used */
	uint32_t free;          /* head of the list of free entries; 0 = none */
};

struct overlay *overlay_new(void);
struct overlay *overlay_clone(const struct overlay *o); /* NULL gives NULL */
void overlay_free(struct overlay *o);                   /* may be NULL */

/* A block is about to be added at @addr: covers the live block there, if any. */
void overlay_push(struct profile *p, taddr_t addr, bool is_request);
/* The newest block at @addr was removed from its table: restores the one below it. */
void overlay_pop(struct profile *p, taddr_t addr);

/* Calls @fn for each covered block that counts, until it returns non-zero. NULL has none. */
int overlay_each(const struct overlay *o, int (*fn)(void *ctx, const struct block *block),
		 void *ctx);

/*
 * The table of snapshots and the bytes by leaf at the detailed ones. Used by
 * profile.c alone; rules: doc/massif.md sections 2.1, 2.3, 2.4.
 *
 * A detailed snapshot copies nothing. Each leaf saves its live bytes in that snapshot's journal
 * before it first changes, so
 *
 *	bytes(leaf, newest detailed) = its entry there, else its live bytes
 *	bytes(leaf, an older one)    = its entry there, else bytes(leaf, the next one)
 *
 * Epochs number the detailed snapshots ever taken. A leaf has saved its value for the newest one if
 * leaf.epoch >= snapshots.epoch.
 */

/* 12 bytes: bytes is split so that the array has no holes. */
struct journal_entry {
	uint32_t leaf;
	uint32_t bytes_low, bytes_high;
};

struct snapshot_record {
	struct snapshot snapshot;
	uint32_t epoch;        /* 0 for an empty one */
	uint32_t leaf_count;   /* highest leaf at that moment */
	VEC(struct journal_entry) journal;
};

struct snapshots {
	struct snapshot_record *record; /* maximum number of them */
	uint32_t count, max;
	uint32_t detailed_freq;
	uint32_t process;      /* process id, for messages */
	uint32_t since_detailed;
	uint32_t newest;       /* index of the newest detailed record; meaningful if epoch != 0 */
	uint32_t epoch;        /* epoch of the newest detailed record that is kept; 0 = none */
	uint32_t last_epoch;   /* the last epoch assigned */
	double peak_inaccuracy;
	uint64_t peak_total;
	/* what a total must exceed to be a new peak; follows from the two above */
	uint64_t peak_limit;
	uint64_t min_interval;
	uint64_t earliest;     /* a normal attempt before this time has no effect */
};

/* Takes max_snapshots, detailed_freq, peak_inaccuracy and process from @options. */
void snapshots_init(struct snapshots *s, const struct profile_options *options);
void snapshots_deinit(struct snapshots *s);
void snapshots_clone(struct snapshots *to, const struct snapshots *from); /* @to: uninitialized */

/*
 * The two attempts of 2.3. @now: time and sizes; @leaf_count: highest leaf; @what: cause, for -v
 * -v, at most 7 letters.
 */
void snapshots_try_normal(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			  const char *what);
void snapshots_try_peak(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			const char *what);

/* Call it before the live bytes of @leaf, number @index, change. */
void snapshots_save_leaf(struct snapshots *s, struct leaf *leaf, uint32_t index);

size_t snapshots_memory(const struct snapshots *s);

/*
 * The profile itself, and what events do to it: time, leaves, totals, blocks, snapshot attempts.
 */

#define LEAF_IGNORED UINT32_MAX

/* What a leaf had at the peak number @epoch, when it changed after that. */
struct leaf_peak {
	uint64_t bytes, variance, epoch;
};

struct profile {
	struct profile_options options;
	struct calltree *calltree;
	struct blocks *blocks;
	struct blocks *ignored;   /* blocks of ignored leaves: their frees are not unknown ones */
	/* blocks below others; NULL until the program announces its first one */
	struct overlay *overlay;
	struct pages pages;
	struct held_blocks held;  /* at most one per thread; their bytes stay counted */
	VEC(struct leaf) leaf;    /* [0] is not used */
	uint32_t *leaf_of_node;   /* 0 = not determined yet, LEAF_IGNORED */
	size_t leaf_of_node_count;
	struct snapshots snapshots;
	struct history *history;  /* the first one; NULL unless options.keep_history */
	struct groups *groups;    /* NULL unless options.groups */
	/* by leaf, with options.keep_peak; an older epoch: it has not changed since the peak */
	VEC(struct leaf_peak) leaf_peak;
	uint64_t peak_epoch;      /* incremented with each new peak */
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
	return estimate_block(p->options.sample_interval, block, profile_block_extra(p, block));
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

/*
 * Changes to a profile by events: time, leaves, totals, blocks, snapshot attempts. For profile.c,
 * profile_quick.c and profile.c. What nearly every event does is inline: a call takes a measurable
 * part of an event's time.
 */

/* Time for blocks: microseconds since the first event. */
static inline uint64_t clock_us(const struct profile *p)
{
	return (p->now_ns - p->first_ns) / 1000;
}

/* profile.c: another millisecond has begun, or it is the first event at all. */
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

/* ---- profile.c ---- */

/* Creates the leaf of @node; LEAF_IGNORED if its blocks do not count. */
uint32_t profile_new_leaf(struct profile *p, uint32_t node);

/* The live bytes are a new maximum. */
void profile_raise_peak(struct profile *p);

/* ---- inline ---- */

static inline uint32_t get_leaf(struct profile *p, uint32_t node)
{
	uint32_t leaf = node < p->leaf_of_node_count ? p->leaf_of_node[node] : 0;
	return leaf ? leaf : profile_new_leaf(p, node);
}

/* The live bytes of @leaf, number @index, are about to change. */
static inline void save_peak(struct profile *p, uint32_t index, const struct leaf *leaf)
{
	struct leaf_peak *at_peak = &p->leaf_peak.data[index];

	if (at_peak->epoch != p->peak_epoch)
		*at_peak = (struct leaf_peak){leaf->live_bytes, leaf->live_variance, p->peak_epoch};
}

static inline struct leaf *change_leaf(struct profile *p, uint32_t index)
{
	struct leaf *leaf = &p->leaf.data[index];
	if (leaf->epoch < p->snapshots.epoch && !p->options.no_heap)
		snapshots_save_leaf(&p->snapshots, leaf, index);
	for (struct history *h = p->history; h; h = h->next)
		history_save(h, index, leaf);
	if (p->options.keep_peak)
		save_peak(p, index, leaf);
	if (p->groups)
		groups_save(p->groups, index, leaf->live_bytes);
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
	if (p->groups)
		groups_grow(p->groups, leaf, w.bytes);
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
	if (p->groups)
		groups_shrink(p->groups, leaf, w.bytes);
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
