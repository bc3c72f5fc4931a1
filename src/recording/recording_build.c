/* Converts the history of a profile to the tables of a recording. */
#include "recording/recording_build.h"

#include <stdlib.h>

#include "profile/history.h"
#include "profile/releases.h"
#include "recording/recording_names.h"
#include "recording/recording_write.h"

/* Rows that are written at a time: a table of a million cells would take 56 MB. */
#define WRITTEN_ROWS 8192u

void recording_builder_init(struct recording_builder *b, struct recording *r,
			    const struct recording_input *in)
{
	*b = (struct recording_builder){.r = r, .in = *in, .peak_epoch = UINT64_MAX};
	recording_names_program(b);
}

void recording_builder_deinit(struct recording_builder *b)
{
	free(b->node);
	free(b->frame);
	free(b->object);
}

/* To a table whose rows are not referred to by their numbers. */
static void add_row(struct recording_builder *b, enum recording_table_id id, const uint64_t *row)
{
	recording_add(b->r, id, row);
	if (!b->out || recording_rows(b->r, id) < WRITTEN_ROWS)
		return;
	recording_write_rows(b->out, b->r, id, 0);
	recording_truncate(b->r, id, 0);
}

/* -- leaves -- */

static void add_histogram(struct recording_builder *b, enum recording_table_id id, uint32_t leaf,
			  const struct histogram *g)
{
	for (unsigned i = 0; i < g->size; i++) {
		const uint64_t row[BUCKET_COLUMNS] = {leaf, g->first + i, g->count[i]};

		if (g->count[i])
			add_row(b, id, row);
	}
}

static void add_leaf(struct recording_builder *b, uint32_t index)
{
	const struct leaf *leaf = profile_leaf(b->in.report->profile, index);
	const struct history_leaf *l = &b->in.history->leaf.data[index];
	const uint64_t row[LEAF_COLUMNS] = {
		[LEAF_NODE] = recording_names_node(b, leaf->node),
		/* with samples each realloc is an allocation */
		[LEAF_ALLOCATIONS] = leaf->total_blocks - l->base_blocks -
				     (b->r->interval ? 0 : l->reallocs),
		[LEAF_BYTES] = leaf->total_bytes - l->base_bytes,
		[LEAF_TEMPORARY] = l->temporary,
		[LEAF_REALLOCS] = l->reallocs,
		[LEAF_MOVED] = l->moved,
		[LEAF_MAX_BYTES] = l->max_bytes,
		[LEAF_MAX_TIME] = l->max_ms,
		[LEAF_NUMBER] = index,
		[LEAF_VARIANCE] = leaf->total_variance - l->base_variance,
		[LEAF_MAX_VARIANCE] = l->max_variance,
	};

	add_row(b, RECORDING_LEAVES, row);
	add_histogram(b, RECORDING_SIZES, index, &l->sizes);
	add_histogram(b, RECORDING_LIFETIMES, index, &l->lifetimes);
}

/* The leaves that changed since @mark; 0 = all. */
static void add_shares(struct recording_builder *b, uint32_t mark)
{
	const struct history *h = b->in.history;
	struct history_share *share;
	size_t n = history_shares(h, &share);

	for (size_t i = 0; i < n; i++) {
		const uint64_t row[SHARE_COLUMNS] = {share[i].leaf, share[i].thread,
						     share[i].blocks, share[i].bytes,
						     share[i].variance};

		if (!mark || h->leaf.data[share[i].leaf].changed == mark)
			add_row(b, RECORDING_SHARES, row);
	}
	free(share);
}

static void add_threads(struct recording_builder *b)
{
	const struct history *h = b->in.history;

	for (uint32_t i = 0; i < h->thread.count; i++) {
		const uint64_t row[THREAD_COLUMNS] = {i, h->thread.data[i].id};

		add_row(b, RECORDING_THREADS, row);
	}
}

/* -- time -- */

static uint64_t sample(uint64_t bytes)
{
	return bytes == HISTORY_UNKNOWN ? 0 : bytes + 1;
}

static void add_timeline(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;

	for (uint32_t i = first; i <= h->current; i++) {
		const struct history_interval *t = &h->interval[i];
		const uint64_t row[TIME_COLUMNS] = {
			h->shift,	     i,
			t->live_bytes,	     t->live_blocks,
			t->peak_bytes,	     t->allocations,
			t->allocated_bytes,  t->releases,
			sample(t->rss),	     sample(t->address_space),
			t->live_variance,    t->allocated_variance,
		};

		add_row(b, RECORDING_TIMELINE, row);
	}
}

static void add_cells(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;
	struct cells_reader rd;
	struct cell c;
	const uint64_t begin[CELL_COLUMNS] = {[CELL_SHIFT] = h->shift, [CELL_BORN] = first};

	add_row(b, RECORDING_CELLS, begin);

	cells_read(&h->cells, &rd);
	while (cells_next(&rd, &c)) {
		const uint64_t row[CELL_COLUMNS] = {h->shift, c.leaf,  c.born,    c.died,
						    c.blocks, c.bytes, c.variance};

		if (cell_changed(&c) >= first)
			add_row(b, RECORDING_CELLS, row);
	}
	cells_read_end(&rd);
}

static void add_peak(struct recording_builder *b)
{
	const struct history *h = b->in.history;
	const struct history_peak *p = &h->peak;
	const uint64_t at[PEAK_AT_COLUMNS] = {p->time_ns / 1000000, p->bytes, p->blocks,
					      p->variance};

	if (b->peak_epoch == h->peak_epoch)
		return;
	b->peak_epoch = h->peak_epoch;
	recording_add(b->r, RECORDING_PEAK_AT, at);
	for (uint32_t i = 1; i < h->leaf.count; i++) {
		const struct history_held held =
			profile_held_at_peak(b->in.report->profile, h, i);
		const uint64_t row[PEAK_COLUMNS] = {recording_rows(b->r, RECORDING_PEAK_AT) - 1, i,
						    held.bytes, held.blocks, held.variance};

		if (row[PEAK_BLOCKS] || row[PEAK_BYTES])
			add_row(b, RECORDING_PEAK, row);
	}
}

static void add_releases(struct recording_builder *b)
{
	const struct releases *all = b->in.releases;

	for (uint32_t i = 0; all && i < releases_count(all); i++) {
		const struct release *release = releases_get(all, i);
		const struct release_sum *sum =
			b->in.history->base_ms ? &release->recent : &release->all;
		const uint64_t row[RELEASE_COLUMNS] = {recording_names_node(b, release->node),
						       sum->blocks, sum->bytes};

		if (sum->blocks || sum->bytes)
			add_row(b, RECORDING_RELEASES, row);
	}
}

/* -- all -- */

void recording_build_all(struct recording_builder *b)
{
	for (uint32_t i = 1; i < b->in.history->leaf.count; i++)
		add_leaf(b, i);
	add_threads(b);
	add_shares(b, 0);
	add_timeline(b, 0);
	add_cells(b, 0);
	add_peak(b);
	add_releases(b);
}

void recording_build_changes(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;

	for (size_t i = 0; i < h->changed.count; i++)
		add_leaf(b, h->changed.data[i]);
	add_threads(b);
	add_shares(b, h->change_mark);
	add_timeline(b, first);
	add_cells(b, first);
	add_peak(b);
	add_releases(b);
}

void recording_fill_end(const struct profile *p, const struct history *h,
			uint64_t out[static END_COLUMNS])
{
	const struct profile_totals *t = profile_totals(p);

	for (int c = 0; c < END_COLUMNS; c++)
		out[c] = 0;
	out[END_LIVE_BYTES] = t->live_bytes;
	out[END_LIVE_BLOCKS] = t->live_blocks;
	out[END_ALLOCATIONS] = t->allocations - h->base.allocations;
	out[END_ALLOCATED_BYTES] = t->allocated_bytes - h->base.allocated_bytes;
	out[END_REALLOCS] = t->reallocations - h->base.reallocations;
	out[END_FREES] = t->frees - h->base.frees;
	out[END_FAILED] = t->failed - h->base.failed;
	out[END_UNKNOWN_FREES] = t->unknown_frees - h->base.unknown_frees;
	for (uint32_t i = 1; i < h->leaf.count; i++) {
		out[END_TEMPORARY] += h->leaf.data[i].temporary;
		if (t->samples)
			out[END_REALLOCS] += h->leaf.data[i].reallocs;
	}
	out[END_LIVE_VARIANCE] = t->live_variance;
	out[END_ALLOCATED_VARIANCE] = t->allocated_variance - h->base.allocated_variance;
}
