/*
 * The history of a profile: ending, merging and starting intervals, threads, and counters that
 * change rarely.
 */
#include "profile/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "profile/profile_update.h"

/* Beyond this number of cells intervals are merged: they take some 10 bytes each. */
#define MAX_CELLS (1u << 20)

static void start_interval(struct history *h, uint64_t live_bytes)
{
	h->end_ms = h->base_ms + ((h->current + UINT64_C(1)) << h->shift);
	h->most_bytes = live_bytes;
	h->interval[h->current].rss = h->interval[h->current].address_space = HISTORY_UNKNOWN;
}

struct history *history_new(struct history *next)
{
	struct history *h = xcalloc(1, sizeof(*h));

	h->next = next;
	h->mark = 1;
	h->cells.packs = true;
	memset(vec_add(&h->leaf), 0, sizeof(struct history_leaf));
	start_interval(h, 0);
	return h;
}

static void clone_histogram(struct histogram *g)
{
	if (g->count)
		g->count = xmemdup(g->count, g->size * sizeof(*g->count));
}

struct history *history_clone(const struct history *h)
{
	if (!h)
		return NULL;
	struct history *c = xmemdup(h, sizeof(*h));

	c->next = history_clone(h->next);
	c->leaf.data = xmemdup(h->leaf.data, h->leaf.count * sizeof(*h->leaf.data));
	c->leaf.capacity = h->leaf.count;
	for (size_t i = 0; i < c->leaf.count; i++) {
		clone_histogram(&c->leaf.data[i].sizes);
		clone_histogram(&c->leaf.data[i].lifetimes);
	}
	hash_copy(&c->thread_by_id, &h->thread_by_id);
	memset(&c->changed, 0, sizeof(c->changed));
	c->change_mark = 0; /* the child has its own writer */
	for (size_t i = 0; i < c->leaf.count; i++)
		c->leaf.data[i].changed = 0;
	c->touched.capacity = h->touched.count;
	if (h->touched.data)
		c->touched.data =
			xmemdup(h->touched.data, h->touched.count * sizeof(*h->touched.data) + 1);
	c->thread.capacity = h->thread.count;
	if (h->thread.data)
		c->thread.data =
			xmemdup(h->thread.data, h->thread.count * sizeof(*h->thread.data) + 1);
	if (h->last_filter)
		c->last_filter = xmemdup(h->last_filter, LAST_FILTER * sizeof(*h->last_filter));
	cells_clone(&c->cells, &h->cells);
	cells_clone(&c->shares, &h->shares);
	return c;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	history_free(h->next);
	for (size_t i = 0; i < h->leaf.count; i++) {
		free(h->leaf.data[i].sizes.count);
		free(h->leaf.data[i].lifetimes.count);
	}
	vec_deinit(&h->leaf);
	vec_deinit(&h->touched);
	vec_deinit(&h->changed);
	vec_deinit(&h->thread);
	free(h->last_filter);
	hash_deinit(&h->thread_by_id);
	cells_deinit(&h->cells);
	cells_deinit(&h->shares);
	free(h);
}

/* -- leaves -- */

void history_add_leaf(struct history *h, uint32_t index)
{
	CHECK(index == h->leaf.count);
	*vec_add(&h->leaf) = (struct history_leaf){
		.peak_epoch = h->peak_epoch, .thread = UINT32_MAX,
	};
}

void history_earlier(struct history *h, const struct block *block, const struct leaf *leaf,
		     uint64_t live_bytes)
{
	struct history_leaf *l = &h->leaf.data[block->leaf];

	note_touched(h, l);
	l->born_bytes += block->size;
	l->born_blocks++;
	note_most(h, l, leaf->live_bytes, live_bytes, h->base_ms);
}

void history_touch(struct history *h, struct history_leaf *leaf)
{
	leaf->touched = h->mark;
	*vec_add(&h->touched) = (uint32_t)(leaf - h->leaf.data);
}

void histogram_extend(struct histogram *g, uint8_t bucket)
{
	uint8_t first = g->size ? MIN(g->first, bucket) : bucket;
	uint8_t end = g->size ? MAX((uint8_t)(g->first + g->size), (uint8_t)(bucket + 1)) :
				(uint8_t)(bucket + 1);
	uint64_t *count = xcalloc(end - first, sizeof(*count));

	if (g->size)
		memcpy(count + (g->first - first), g->count, g->size * sizeof(*count));
	free(g->count);
	*g = (struct histogram){count, first, (uint8_t)(end - first)};
}

/* -- intervals -- */

static uint64_t count_requests(const struct profile_totals *t)
{
	return t->allocations + t->reallocations;
}

static uint64_t count_releases(const struct profile_totals *t)
{
	return t->frees + t->reallocations + t->replaced_blocks;
}

static void sync_totals(struct history *h, const struct profile_totals *totals)
{
	struct history_interval *i = &h->interval[h->current];

	i->live_bytes = totals->live_bytes;
	i->live_blocks = totals->live_blocks;
	i->peak_bytes = MAX(i->peak_bytes, h->most_bytes);
	i->allocations = count_requests(totals) - count_requests(&h->base);
	i->allocated_bytes = totals->allocated_bytes - h->base.allocated_bytes;
	i->releases = count_releases(totals) - count_releases(&h->base);
	i->live_variance = totals->live_variance;
	i->allocated_variance = totals->allocated_variance - h->base.allocated_variance;
}

void history_forget_changes(struct history *h)
{
	h->changed.count = 0;
	h->change_mark++;
}

void history_sync(struct history *h, const struct profile_totals *totals)
{
	sync_totals(h, totals);
	for (size_t i = 0; i < h->touched.count; i++) {
		uint32_t index = h->touched.data[i];
		struct history_leaf *l = &h->leaf.data[index];

		if (l->changed != h->change_mark) {
			l->changed = h->change_mark;
			*vec_add(&h->changed) = index;
		}
		if (!l->born_blocks && !l->born_bytes)
			continue;
		const struct cell cell = {index, (uint16_t)h->current, CELL_NEVER, l->born_blocks,
					  l->born_bytes, l->born_variance};
		cells_add(&h->cells, &cell);
		l->born_blocks = l->born_bytes = l->born_variance = 0;
	}
	h->touched.count = 0;
	h->mark++;
}

static void merge_two(struct history_interval *to, const struct history_interval *first,
		      const struct history_interval *second)
{
	struct history_interval both = *second;

	both.peak_bytes = MAX(first->peak_bytes, second->peak_bytes);
	if (second->rss == HISTORY_UNKNOWN) {
		both.rss = first->rss;
		both.address_space = first->address_space;
	}
	*to = both;
}

/* The current interval is synced. */
static void merge(struct history *h)
{
	for (uint32_t i = 0; 2 * i + 1 <= h->current; i++)
		merge_two(&h->interval[i], &h->interval[2 * i], &h->interval[2 * i + 1]);
	if (h->current % 2 == 0)
		h->interval[h->current / 2] = h->interval[h->current];
	h->current /= 2;
	h->shift++;
	cells_merge(&h->cells);
}

/* Slots without values do not count: their number depends on how often it was synced. */
static void thin_cells(struct history *h)
{
	for (uint32_t n = cells_used(&h->cells); n > MAX_CELLS && h->current > 0;) {
		uint32_t before = n;

		merge(h);
		n = cells_used(&h->cells);
		if (n > before / 4 * 3)
			break; /* indexed by leaf, not by interval */
	}
}

void history_advance(struct history *h, uint64_t now_ms, const struct profile_totals *totals)
{
	uint64_t age_ms = now_ms - h->base_ms;

	history_sync(h, totals);
	while (age_ms >> h->shift >= HISTORY_INTERVALS)
		merge(h);
	if (cells_bound(&h->cells) > MAX_CELLS)
		thin_cells(h);
	const struct history_interval last = h->interval[h->current];

	while (h->current < age_ms >> h->shift) {
		h->interval[++h->current] = last;
		h->interval[h->current].peak_bytes = last.live_bytes;
		start_interval(h, last.live_bytes);
	}
	h->end_ms = h->base_ms + ((h->current + UINT64_C(1)) << h->shift);
}

void history_sample(struct history *h, uint64_t rss, uint64_t address_space)
{
	h->interval[h->current].rss = rss;
	h->interval[h->current].address_space = address_space;
}

/* -- restart -- */

/* All that @l holds is from before; its threads are counted anew. */
static void restart_leaf(struct history *h, uint32_t index, const struct leaf *leaf)
{
	struct history_leaf *l = &h->leaf.data[index];

	free(l->sizes.count);
	free(l->lifetimes.count);
	*l = (struct history_leaf){
		.max_bytes = leaf->live_bytes, .max_variance = leaf->live_variance,
		.thread = UINT32_MAX, .base_blocks = leaf->total_blocks,
		.base_bytes = leaf->total_bytes, .base_variance = leaf->total_variance};
	const struct cell cell = {index, CELL_BEFORE, CELL_NEVER, leaf->live_blocks,
				  leaf->live_bytes, leaf->live_variance};

	if (cell.blocks || cell.bytes)
		cells_add(&h->cells, &cell);
}

void history_restart(struct history *h, const struct profile_totals *t, const struct leaf *leaf,
		     uint64_t now_ms)
{
	cells_deinit(&h->cells);
	cells_deinit(&h->shares);
	for (uint32_t i = 1; i < h->leaf.count; i++)
		restart_leaf(h, i, &leaf[i]);
	h->touched.count = h->changed.count = 0;
	h->mark = h->change_mark = 1;
	h->current = h->shift = 0;
	h->base_ms = now_ms;
	h->base = *t;
	h->interval[0] = (struct history_interval){.peak_bytes = t->live_bytes};
	start_interval(h, t->live_bytes);
	h->peak_epoch++;
	h->peak = (struct history_peak){t->live_bytes, t->live_blocks, t->live_variance, 0};
}

/* -- threads -- */

static uint32_t hash_last(taddr_t addr)
{
	return (uint32_t)((addr * 0x9e3779b97f4a7c15ull) >> 32) % LAST_FILTER;
}

void history_set_last(struct history *h, uint32_t index, taddr_t addr)
{
	taddr_t *last = &h->thread.data[index].last;

	if (*last)
		h->last_filter[hash_last(*last)]--;
	if (addr)
		h->last_filter[hash_last(addr)]++;
	*last = addr;
}

void history_forget_last(struct history *h, taddr_t addr)
{
	if (!h->last_filter[hash_last(addr)])
		return;
	for (uint32_t i = 0; i < h->thread.count; i++)
		if (h->thread.data[i].last == addr)
			history_set_last(h, i, 0);
}

void history_forget_all(struct history *h, taddr_t addr)
{
	if (h->thread.count && h->thread.data[0].last == addr)
		h->thread.data[0].last = 0;
}

/* With a second thread, blocks may be released by another thread than their own. */
static void start_filter(struct history *h)
{
	taddr_t last = h->thread.data[0].last;

	h->last_filter = xcalloc(LAST_FILTER, sizeof(*h->last_filter));
	h->thread.data[0].last = 0;
	history_set_last(h, 0, last);
}

uint32_t history_switch_thread(struct history *h, uint32_t id)
{
	const uint32_t *known =
		hash_find(&h->thread_by_id, hash_u64(id), i, h->thread.data[*i].id == id);

	if (known)
		return h->last_thread = *known;
	h->last_thread = (uint32_t)h->thread.count;
	*hash_add(&h->thread_by_id, hash_u64(id)) = h->last_thread;
	*vec_add(&h->thread) = (struct history_thread){.id = id};
	if (h->thread.count == 2)
		start_filter(h);
	return h->last_thread;
}

static struct cell share_of(const struct history_leaf *l, uint32_t leaf)
{
	return (struct cell){leaf, (uint16_t)(l->thread >> 16), (uint16_t)l->thread,
			     l->thread_blocks, l->thread_bytes, l->thread_variance};
}

void history_switch_share(struct history *h, struct history_leaf *l, uint32_t thread)
{
	if (l->thread != UINT32_MAX) {
		uint32_t leaf = (uint32_t)(l - h->leaf.data);
		const struct cell share = share_of(l, leaf);

		cells_add(&h->shares, &share);
	}
	l->thread = thread;
	l->thread_blocks = l->thread_bytes = l->thread_variance = 0;
}

size_t history_shares(const struct history *h, struct history_share **out)
{
	struct cells all;
	struct cell *cell;

	cells_clone(&all, &h->shares);
	for (uint32_t i = 1; i < h->leaf.count; i++) {
		const struct history_leaf *l = &h->leaf.data[i];
		const struct cell share = share_of(l, i);

		if (l->thread != UINT32_MAX)
			cells_add(&all, &share);
	}
	size_t n = cells_sorted(&all, &cell);

	*out = xcalloc(n + 1, sizeof(**out));
	for (size_t i = 0; i < n; i++)
		(*out)[i] = (struct history_share){
			cell[i].leaf, (uint32_t)cell[i].born << 16 | cell[i].died, cell[i].blocks,
			cell[i].bytes, cell[i].variance};
	free(cell);
	cells_deinit(&all);
	return n;
}
