/*
 * Checks the invariants of profile.h by recomputing sums. A violation stops ptmem: inconsistent
 * numbers must not be written. Walks over blocks, leaves and journals.
 */
#include "profile/profile.h"

#include <stdlib.h>

#include "base/log.h"
#include "profile/profile_update.h"

struct sum {
	const struct profile *profile;
	uint64_t bytes, blocks, extra, variance;
	uint64_t count; /* of blocks, whatever their weight */
	uint64_t *by_leaf;
};

static int add_block(void *ctx, const struct block *block)
{
	struct sum *s = ctx;
	CHECK(block->leaf && block->leaf <= profile_leaf_count(s->profile));
	struct weight w = profile_weigh(s->profile, block);
	s->bytes += w.bytes;
	s->blocks += w.blocks;
	s->extra += w.extra;
	s->variance += w.variance;
	s->count++;
	s->by_leaf[block->leaf] += w.bytes;
	return 0;
}

static void add_pages(struct sum *s)
{
	const struct pages *pages = &s->profile->pages;
	for (size_t i = 0; i < pages->range.count; i++) {
		const struct page_run *r = &pages->range.data[i];
		CHECK(r->start < r->end && (i == 0 || r[-1].end <= r->start));
		s->bytes += r->end - r->start;
		s->blocks += (r->end - r->start) / profile_granule(s->profile);
		s->by_leaf[r->leaf] += r->end - r->start;
	}
}

/* Each leaf's bytes are those of its blocks, and the sum over all leaves is that of the totals. */
static void check_leaves(const struct profile *p, const struct sum *s)
{
	uint64_t bytes = 0, blocks = 0, lost = 0, total = 0;
	for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
		const struct leaf *leaf = &p->leaf.data[i];
		CHECK(leaf->node < calltree_node_count(p->calltree));
		CHECK(leaf->live_bytes >= s->by_leaf[i]);
		total += leaf->total_bytes;
		CHECK(leaf->total_blocks + p->totals.earlier_blocks >= leaf->live_blocks);
		lost += leaf->live_bytes - s->by_leaf[i];
		bytes += leaf->live_bytes;
		blocks += leaf->live_blocks;
	}
	CHECK(lost == p->lost_bytes + p->counted_bytes);
	CHECK(total == p->totals.allocated_bytes);
	CHECK(bytes == p->totals.live_bytes && blocks == p->totals.live_blocks);
}

/* The leaves of each detailed snapshot add up to its heap; walks back through the journals once. */
static void check_snapshots(const struct profile *p, uint64_t *bytes)
{
	const struct snapshots *s = &p->snapshots;
	uint32_t leaves = profile_leaf_count(p), peaks = 0;
	for (uint32_t i = 1; i <= leaves; i++)
		bytes[i] = p->options.no_heap ? 0 : p->leaf.data[i].live_bytes;
	for (uint32_t i = s->count; i-- > 0;) {
		const struct snapshot_record *r = &s->record[i];
		CHECK(i == 0 || r->snapshot.time >= r[-1].snapshot.time);
		CHECK((r->snapshot.kind == SNAPSHOT_EMPTY) == (r->epoch == 0));
		peaks += r->snapshot.kind == SNAPSHOT_PEAK;
		if (!r->epoch)
			continue;
		uint64_t sum = 0;
		for (size_t j = 0; j < r->journal.count; j++) {
			struct journal_entry e = r->journal.data[j];
			CHECK(e.leaf && e.leaf <= r->leaf_count);
			bytes[e.leaf] = (uint64_t)e.bytes_high << 32 | e.bytes_low;
		}
		for (uint32_t leaf = 1; leaf <= r->leaf_count; leaf++)
			sum += bytes[leaf];
		CHECK(sum == r->snapshot.heap);
	}
	CHECK(peaks <= 1 && s->count < s->max);
}

/* The live bytes in @h are those of the profile. */
static void check_history(const struct profile *p, const struct history *h)
{
	uint64_t bytes = 0, blocks = 0, variance = 0;
	struct cell *cell;

	size_t n = cells_sorted(&h->cells, &cell);

	for (size_t i = 0; i < n; i++) {
		uint64_t sign = cell[i].died == CELL_NEVER ? 1 : UINT64_MAX;

		bytes += sign * cell[i].bytes;
		blocks += sign * cell[i].blocks;
		variance += sign * cell[i].variance;
	}
	free(cell);
	for (size_t i = 1; i < h->leaf.count; i++) {
		bytes += h->leaf.data[i].born_bytes;
		blocks += h->leaf.data[i].born_blocks;
		variance += h->leaf.data[i].born_variance;
	}
	CHECK(bytes == p->totals.live_bytes && blocks == p->totals.live_blocks);
	CHECK(variance == p->totals.live_variance);
	CHECK(h->peak.bytes >= p->totals.live_bytes);
	CHECK(h->base_ms ? h->peak.bytes <= p->totals.peak_bytes :
			   h->peak.bytes == p->totals.peak_bytes);
}

static void check_peak(const struct profile *p)
{
	uint64_t bytes = 0, variance = 0;

	for (uint32_t i = 1; i < p->leaf.count; i++) {
		struct history_held at_peak = profile_at_peak(p, i);

		bytes += at_peak.bytes;
		variance += at_peak.variance;
	}
	CHECK(bytes == p->totals.peak_bytes && variance == p->totals.peak_variance);
}

void profile_check(const struct profile *p)
{
	uint64_t *by_leaf = xcalloc(p->leaf.count, sizeof(*by_leaf));
	struct sum s = { .profile = p, .by_leaf = by_leaf };
	blocks_each(p->blocks, add_block, &s);
	CHECK(s.count == blocks_count(p->blocks));
	overlay_each(p->overlay, add_block, &s);
	for (size_t i = 0; i < p->held.list.count; i++)
		if (p->held.list.data[i].from == HELD_COUNTED)
			add_block(&s, &p->held.list.data[i].block);
	add_pages(&s);
	s.bytes += p->counted_bytes; /* those of EVENT_COUNT are in no table */
	s.blocks += p->counted_blocks;
	CHECK(s.bytes + p->lost_bytes == p->totals.live_bytes);
	CHECK(s.blocks + p->lost_blocks == p->totals.live_blocks);
	CHECK(s.extra + p->lost_extra == p->totals.extra);
	CHECK(s.variance == p->totals.live_variance);
	CHECK(p->totals.peak_bytes >= p->totals.live_bytes);
	check_leaves(p, &s);
	check_snapshots(p, by_leaf);
	for (const struct history *h = p->history; h; h = h->next)
		check_history(p, h);
	if (p->options.keep_peak)
		check_peak(p);
	free(by_leaf);
}
