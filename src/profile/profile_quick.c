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

/*
 * The bounds below which a block that is released at once causes neither a peak nor a snapshot;
 * other events move them. All exclusive.
 */
struct pair_bounds {
	uint64_t size;
	uint64_t bytes;      /* with the extra ones */
	uint64_t time_bytes; /* of --time-unit=B */
	uint64_t ns;
};

/* What may be added to @used before @most is exceeded, and 1. */
static uint64_t bound(uint64_t most, uint64_t used)
{
	return most < used ? 0 : MIN(most - used, UINT64_MAX - 1) + 1;
}

static struct pair_bounds find_bounds(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	bool is_bytes = p->options.time_unit == TIME_BYTES;

	if (p->options.no_heap || p->ignored->count || p->groups ||
	    (!is_bytes && p->time_ms >= p->snapshots.earliest))
		return (struct pair_bounds){0};
	return (struct pair_bounds){
		.size = MIN(bound(p->peak_limit, t->live_bytes), SIZE_MAX44 + 1),
		.bytes = bound(p->snapshots.peak_limit, t->live_bytes + t->extra + p->stacks),
		.time_bytes = is_bytes ? p->snapshots.earliest : UINT64_MAX,
		.ns = p->next_ms_ns,
	};
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

static inline bool is_pair(const struct quick_event *ev, const struct quick_event *end)
{
	return ev + 1 < end && !ev->is_free && ev[1].is_free && ev[1].addr == ev->addr;
}

/*
 * Passes allocations that are followed by the free of their block, from @ev on, as long as none can
 * cause a peak or a snapshot: only the sums of all that was ever allocated grow. Returns the first
 * event that is not passed.
 */
static const struct quick_event *pass_pairs(struct profile *p, const struct quick_event *ev,
					    const struct quick_event *end)
{
	const struct pair_bounds most = find_bounds(p);
	const struct quick_event *start = ev;
	uint64_t now_ns = p->now_ns, time_bytes = p->time_bytes, bytes = 0;

	for (; is_pair(ev, end); ev += 2) {
		uint64_t size = ev->size, both = size + plain_extra(p, size);
		uint64_t born_ns = MAX(now_ns, ev->time_ns);
		uint64_t freed_ns = MAX(born_ns, ev[1].time_ns);
		if (size >= most.size || both >= most.bytes || freed_ns >= most.ns ||
		    time_bytes + 2 * both >= most.time_bytes ||
		    !blocks_is_absent(p->blocks, ev->addr))
			break;
		uint32_t index = get_leaf(p, ev->node);
		if (index == LEAF_IGNORED)
			break;
		struct leaf *leaf = &p->leaf.data[index];
		leaf->total_bytes += size;
		leaf->total_blocks++;
		leaf->calls++;
		bytes += size;
		time_bytes += 2 * both;
		now_ns = freed_ns;
		if (p->history)
			remember_pair(p, ev, index, freed_ns - born_ns);
	}
	p->totals.allocations += (uint64_t)(ev - start) / 2;
	p->totals.frees += (uint64_t)(ev - start) / 2;
	p->totals.allocated_bytes += bytes;
	p->time_bytes = time_bytes;
	p->now_ns = now_ns;
	return ev;
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
	while (ev < end) {
		const struct quick_event *near = ev + MIN(BLOCKS_AHEAD, end - ev);
		for (; fetched < near; fetched++)
			blocks_prefetch(p->blocks, fetched->addr);
		if (is_pair(ev, fetched)) {
			const struct quick_event *behind = pass_pairs(p, ev, fetched);
			frees += (size_t)(behind - ev) / 2;
			if (behind != ev) {
				ev = behind;
				continue;
			}
		}
		frees += ev->is_free;
		pass_time(p, ev->time_ns);
		if (ev->is_free ? !quick_free(p, ev) : !quick_alloc(p, ev))
			slow_event(p, ev);
		ev++;
	}
	return count - frees;
}
