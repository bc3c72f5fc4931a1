/*
 * Plain allocations and frees in batches, with the same effect as profile_event for each. It is
 * fast because the table's lines are prefetched, nothing is called in the normal case, and a block
 * that is freed by the very next event never enters the table.
 */
#include "profile/profile.h"

#include "profile/blocks_quick.h"
#include "profile/profile_update.h"

/* A table of so few is in the cache in any case. */
#define FEW_BLOCKS 4096u

static void slow_event(struct profile *p, const struct quick_event *ev)
{
	const struct event whole = event_of_quick(ev);
	profile_event(p, &whole);
}

/* The block of @ev for histories: its size is what it counts. */
static inline struct history_block plain_block(const struct quick_event *ev, uint32_t leaf,
					       uint64_t size)
{
	return (struct history_block){.leaf = leaf, .thread = ev->thread, .addr = ev->addr,
				      .size = size, .bytes = size, .blocks = 1,
				      .new_bytes = size};
}

static inline bool quick_alloc(struct profile *p, const struct quick_event *ev)
{
	uint32_t leaf = ev->addr ? get_leaf(p, ev->node) :
				   LEAF_IGNORED; /* a failed call makes no leaf */
	if (leaf == LEAF_IGNORED || p->ignored->count ||
	    !blocks_quick_add(p->blocks, ev->addr, ev->size, leaf, clock_us(p)))
		return false;
	count_alloc(p, leaf, weigh_plain(p, ev->size));
	const struct history_block b = plain_block(ev, leaf, ev->size);

	remember_alloc(p, &b);
	return true;
}

static inline bool quick_free(struct profile *p, const struct quick_event *ev)
{
	struct block_owner owner = blocks_quick_take(p->blocks, ev->addr);
	if (!owner.is_found)
		return false;
	count_free(p, owner.leaf, weigh_plain(p, owner.size));
	const struct history_block b = plain_block(ev, owner.leaf, owner.size);

	remember_release(p, &b, owner.time_us);
	return true;
}

/* The release of @ev's block follows, @lived_ns later, in the same millisecond. */
static inline void remember_pair(struct profile *p, const struct quick_event *ev, uint32_t leaf,
				 uint64_t lived_ns)
{
	struct history_block b = plain_block(ev, leaf, ev->size);

	b.releaser = ev[1].thread;
	b.lived_us = lived_ns < 1000 ? 0 : lived_ns / 1000;
	for (struct history *h = p->history; h; h = h->next)
		history_pair(h, &b, &p->leaf.data[leaf], p->totals.live_bytes + ev->size,
			     p->time_ms);
}

/*
 * An allocation followed by the free of its block, if neither can cause a peak or a snapshot: the
 * other sums stay the same, only the bytes ever allocated grow.
 */
static inline bool quick_pair(struct profile *p, const struct quick_event *ev)
{
	uint64_t extra = plain_extra(p, ev->size), both = ev->size + extra;
	uint64_t time = p->options.time_unit == TIME_BYTES ? p->time_bytes + 2 * both : p->time_ms;
	uint64_t live = p->totals.live_bytes + ev->size;
	uint64_t born_ns = MAX(p->now_ns, ev->time_ns), now_ns = MAX(born_ns, ev[1].time_ns);
	if (live > p->peak_limit || time >= p->snapshots.earliest || now_ns >= p->next_ms_ns ||
	    live + p->totals.extra + extra + p->stacks > p->snapshots.peak_limit ||
	    ev->size > SIZE_MAX44 || !blocks_is_absent(p->blocks, ev->addr))
		return false;
	uint32_t index = get_leaf(p, ev->node);
	if (index == LEAF_IGNORED)
		return false;
	struct leaf *leaf = &p->leaf.data[index];
	leaf->total_bytes += ev->size;
	leaf->total_blocks++;
	leaf->calls++;
	p->totals.allocations++;
	p->totals.allocated_bytes += ev->size;
	p->totals.frees++;
	p->time_bytes += 2 * both;
	p->now_ns = now_ns;
	remember_pair(p, ev, index, now_ns - born_ns);
	return true;
}

/* Whether quick_pair may be called; only other events change that. */
static bool may_pair(const struct profile *p)
{
	return !p->options.no_heap && !p->ignored->count && !p->groups;
}

void profile_reserve(struct profile *p, uint64_t count)
{
	blocks_reserve(p->blocks, count);
}

void profile_prefetch(const struct profile *p, taddr_t addr)
{
	blocks_prefetch(p->blocks, addr);
}

size_t profile_quick(struct profile *p, const struct quick_event *ev, size_t count)
{
	const struct quick_event *end = ev + count;
	size_t frees = 0;

	/* the counter is read at each event; an overlay may cover blocks; samples are few */
	if (p->options.time_unit == TIME_INSTRUCTIONS || p->overlay || p->options.sample_interval) {
		for (; ev < end; ev++) {
			frees += ev->is_free;
			slow_event(p, ev);
		}
		return count - frees;
	}
	const struct quick_event *fetched = blocks_count(p->blocks) < FEW_BLOCKS ? end : ev;
	bool pairs = may_pair(p);
	for (; ev < end; ev++) {
		const struct quick_event *near = ev + MIN(BLOCKS_AHEAD, end - ev);
		for (; fetched < near; fetched++)
			blocks_prefetch(p->blocks, fetched->addr);
		if (pairs && !ev->is_free && ev + 1 < end && ev[1].is_free &&
		    ev[1].addr == ev->addr && quick_pair(p, ev)) {
			frees++;
			ev++;
			continue;
		}
		frees += ev->is_free;
		pass_time(p, ev->time_ns);
		if (ev->is_free) {
			if (!quick_free(p, ev))
				slow_event(p, ev);
		} else if (!quick_alloc(p, ev)) {
			slow_event(p, ev);
		}
		pairs = may_pair(p);
	}
	return count - frees;
}
