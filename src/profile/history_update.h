/*
 * The changes that events make to a history. Inline functions handle what nearly every event
 * does.
 */
#ifndef PTMEM_PROFILE_HISTORY_UPDATE_H
#define PTMEM_PROFILE_HISTORY_UPDATE_H

#include "profile/history.h"
#include "profile/profile.h"

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
		histogram_add(&l->lifetimes, now_us - MIN(born_us, now_us), b->blocks);
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
	histogram_add(&l->lifetimes, b->lived_us, b->blocks);
	l->temporary += b->thread == b->releaser ? b->blocks : 0;
	if (h->last_filter)
		history_set_last(h, thread, 0);
	else
		h->thread.data[thread].last = 0;
	if (b->thread != b->releaser)
		find_thread(h, b->releaser); /* assigns its number now, as with single events */
}

#endif
