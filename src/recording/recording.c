/* Texts and tables of a recording. */
#include "recording/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/cells.h"
#include "profile/estimate.h"
#include "profile/history.h"

const struct recording_table_info recording_table_info[RECORDING_TABLES] = {
	[RECORDING_META] = {"meta", META_COLUMNS, META_COLUMNS},
	[RECORDING_OBJECTS] = {"objs", OBJECT_COLUMNS, OBJECT_COLUMNS},
	[RECORDING_FRAMES] = {"frms", FRAME_COLUMNS, FRAME_COLUMNS},
	[RECORDING_NODES] = {"node", NODE_COLUMNS, NODE_COLUMNS},
	[RECORDING_LEAVES] = {"leaf", LEAF_COLUMNS, LEAF_VARIANCE},
	[RECORDING_SIZES] = {"size", BUCKET_COLUMNS, BUCKET_COLUMNS},
	[RECORDING_LIFETIMES] = {"span", BUCKET_COLUMNS, BUCKET_COLUMNS},
	[RECORDING_SHARES] = {"shar", SHARE_COLUMNS, SHARE_VARIANCE},
	[RECORDING_THREADS] = {"thrd", THREAD_COLUMNS, THREAD_COLUMNS},
	[RECORDING_TIMELINE] = {"time", TIME_COLUMNS, TIME_LIVE_VARIANCE},
	[RECORDING_CELLS] = {"cell", CELL_COLUMNS, CELL_VARIANCE},
	[RECORDING_PEAK_AT] = {"pkat", PEAK_AT_COLUMNS, PEAK_AT_VARIANCE},
	[RECORDING_PEAK] = {"peak", PEAK_COLUMNS, PEAK_VARIANCE},
	[RECORDING_MARKERS] = {"mark", MARKER_COLUMNS, MARKER_COLUMNS},
	[RECORDING_LEAKS] = {"leak", LEAK_COLUMNS, LEAK_COLUMNS},
	[RECORDING_RELEASES] = {"rels", RELEASE_COLUMNS, RELEASE_COLUMNS},
	[RECORDING_END] = {"end.", END_COLUMNS, END_LIVE_VARIANCE},
	[RECORDING_CALLS] = {"call", CALL_COLUMNS, CALL_COLUMNS},
	[RECORDING_INSPECTION] = {"insp", INSPECTION_COLUMNS, INSPECTION_COLUMNS},
	[RECORDING_DOUBTS] = {"doub", DOUBT_COLUMNS, DOUBT_COLUMNS},
	[RECORDING_RESIDENT] = {"resi", RESIDENT_COLUMNS, RESIDENT_COLUMNS},
	[RECORDING_ARENAS] = {"aren", ARENA_COLUMNS, ARENA_COLUMNS},
	[RECORDING_PINNED] = {"pind", PINNED_COLUMNS, PINNED_COLUMNS},
	[RECORDING_HEAPS] = {"heap", HEAP_COLUMNS, HEAP_COLUMNS},
	[RECORDING_HEAP_CELLS] = {"hmap", HEAP_CELL_COLUMNS, HEAP_CELL_COLUMNS},
	[RECORDING_TYPES] = {"type", TYPE_COLUMNS, TYPE_COLUMNS},
	[RECORDING_PINS] = {"pins", PIN_COLUMNS, PIN_COLUMNS},
	[RECORDING_ADVICE] = {"advc", ADVICE_COLUMNS, ADVICE_COLUMNS},
};

struct recording *recording_new(void)
{
	struct recording *r = xcalloc(1, sizeof(*r));

	*vec_add(&r->text) = xstrdup("");
	return r;
}

void recording_clear(struct recording *r, enum recording_table_id id)
{
	for (int c = 0; c < RECORDING_MAX_COLUMNS; c++)
		free(r->table[id].column[c]);
	r->table[id] = (struct recording_table){0};
}

void recording_free(struct recording *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->text.count; i++)
		free(r->text.data[i]);
	vec_deinit(&r->text);
	hash_deinit(&r->text_index);
	my_code_deinit(&r->my_code);
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_clear(r, (enum recording_table_id)id);
	free(r);
}

/* -- texts -- */

uint32_t recording_text_index(struct recording *r, const char *text, size_t size)
{
	size = strnlen(text, size);
	if (!size)
		return 0;
	for (size_t i = r->text_index.index.count + 1; i < r->text.count; i++)
		*hash_add(&r->text_index, hash_bytes(r->text.data[i], strlen(r->text.data[i]))) =
			(uint32_t)i; /* read from a file */
	uint64_t hash = hash_bytes(text, size);
	const uint32_t *known = hash_find(&r->text_index, hash, i,
					  strlen(r->text.data[*i]) == size &&
						  memcmp(r->text.data[*i], text, size) == 0);

	if (known)
		return *known;
	*vec_add(&r->text) = xstrndup(text, size);
	return *hash_add(&r->text_index, hash) = (uint32_t)r->text.count - 1;
}

uint32_t recording_string(struct recording *r, const char *text)
{
	return text ? recording_text_index(r, text, strlen(text)) : 0;
}

/* -- tables -- */

void recording_add(struct recording *r, enum recording_table_id id, const uint64_t *value)
{
	struct recording_table *t = &r->table[id];
	size_t capacity = t->capacity;

	for (int c = 0; c < recording_table_info[id].columns; c++) {
		capacity = t->capacity;
		t->column[c] = xgrow(t->column[c], &capacity, t->rows + 1, sizeof(**t->column));
		t->column[c][t->rows] = value[c];
	}
	t->capacity = capacity;
	t->rows++;
}

void recording_truncate(struct recording *r, enum recording_table_id id, size_t rows)
{
	r->table[id].rows = MIN(r->table[id].rows, rows);
}

void recording_copy(const struct recording *from, enum recording_table_id id, uint32_t texts,
		    struct recording *r)
{
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < recording_rows(from, id); i++) {
		for (unsigned c = 0; c < recording_table_info[id].columns; c++) {
			row[c] = recording_get(from, id, i, c);
			if (texts & 1u << c)
				row[c] = recording_string(r, from->text.data[row[c]]);
		}
		recording_add(r, id, row);
	}
}

void recording_set_meta(struct recording *r, const char *key, const char *value)
{
	const uint64_t row[META_COLUMNS] = {recording_string(r, key), recording_string(r, value)};

	recording_add(r, RECORDING_META, row);
}

const char *recording_meta(const struct recording *r, const char *key)
{
	for (size_t i = recording_rows(r, RECORDING_META); i-- > 0;) {
		size_t name = recording_get(r, RECORDING_META, i, META_KEY);

		if (strcmp(r->text.data[name], key) == 0)
			return r->text.data[recording_get(r, RECORDING_META, i, META_VALUE)];
	}
	return NULL;
}

double recording_duration(const struct recording *r)
{
	const char *ms = r->is_complete ? recording_meta(r, "duration") : NULL;
	double value = ms ? strtod(ms, NULL) : 0;

	if (!r->is_complete)
		return (double)(recording_rows(r, RECORDING_TIMELINE) << r->shift);
	return isfinite(value) ? value : 0;
}

uint64_t recording_longest_interval(const struct recording *r)
{
	const char *text = recording_meta(r, "heap_sample_max");

	return MAX(text ? strtoull(text, NULL, 10) : 0, r->interval);
}

/* -- estimates -- */

uint64_t recording_count(const struct recording *r, uint64_t units)
{
	return r->interval ? estimate_count(units) : units;
}

double recording_error(const struct recording *r, double variance)
{
	return r->interval ? estimate_error(r->interval, (uint64_t)fmin(variance, 0x1p63)) : 0;
}

double recording_square_error(const struct recording *r, double variance)
{
	double error = recording_error(r, variance);

	return error * error;
}

/*
 * Rows are in the order in which they were written, so intervals only become longer: at each change
 * the rows read so far are merged in pairs, as the history of the profile was.
 */

#define MAX_SHIFT 32u /* an interval of 49 days */

struct moment {
	uint64_t value[TIME_COLUMNS];
	bool is_there;
};

static void merge_interval_pairs(struct moment *all)
{
	for (size_t i = 0; i < HISTORY_INTERVALS; i++) {
		struct moment none = {0};
		const struct moment *a = 2 * i < HISTORY_INTERVALS ? &all[2 * i] : &none;
		const struct moment *b = 2 * i < HISTORY_INTERVALS ? &all[2 * i + 1] : &none;
		struct moment both = b->is_there ? *b : *a;

		if (a->is_there && b->is_there) {
			both.value[TIME_PEAK_BYTES] =
				MAX(a->value[TIME_PEAK_BYTES], b->value[TIME_PEAK_BYTES]);
			if (!b->value[TIME_RSS]) {
				both.value[TIME_RSS] = a->value[TIME_RSS];
				both.value[TIME_ADDRESS_SPACE] = a->value[TIME_ADDRESS_SPACE];
			}
		}
		both.value[TIME_INTERVAL] = i;
		all[i] = both;
	}
}

static const char *add_moment(const struct recording *r, size_t row, struct moment *all,
			      uint64_t *shift)
{
	uint64_t next = recording_get(r, RECORDING_TIMELINE, row, TIME_SHIFT);
	uint64_t i = recording_get(r, RECORDING_TIMELINE, row, TIME_INTERVAL);

	if (next < *shift || next > MAX_SHIFT || i >= HISTORY_INTERVALS)
		return "the timeline has an impossible interval";
	for (; *shift < next; ++*shift)
		merge_interval_pairs(all);
	all[i].is_there = true;
	for (int c = 0; c < TIME_COLUMNS; c++)
		all[i].value[c] = recording_get(r, RECORDING_TIMELINE, row, c);
	return NULL;
}

static const char *put_moments(struct recording *r, struct moment *all, uint64_t shift)
{
	size_t n = HISTORY_INTERVALS;

	while (n > 0 && !all[n - 1].is_there)
		n--;
	recording_truncate(r, RECORDING_TIMELINE, 0);
	for (size_t i = 0; i < n; i++) {
		if (!all[i].is_there)
			return "the timeline has a gap";
		all[i].value[TIME_SHIFT] = shift;
		recording_add(r, RECORDING_TIMELINE, all[i].value);
	}
	return NULL;
}

static const char *join_timeline(struct recording *r)
{
	struct moment *all = xcalloc(HISTORY_INTERVALS, sizeof(*all));
	const char *why = NULL;
	uint64_t shift = 0;

	for (size_t row = 0; !why && row < recording_rows(r, RECORDING_TIMELINE); row++)
		why = add_moment(r, row, all, &shift);
	if (!why)
		why = put_moments(r, all, shift);
	free(all);
	r->shift = (uint32_t)shift;
	return why;
}

/* -- cells -- */

static const char *add_cell(const struct recording *r, size_t row, struct cells *cells,
			    uint64_t *shift)
{
	uint64_t value[CELL_COLUMNS];

	for (int c = 0; c < CELL_COLUMNS; c++)
		value[c] = recording_get(r, RECORDING_CELLS, row, c);
	if (value[CELL_SHIFT] < *shift || value[CELL_SHIFT] > r->shift)
		return "cells have an impossible interval";
	for (; *shift < value[CELL_SHIFT]; ++*shift)
		cells_merge(cells);
	if (!value[CELL_LEAF]) {
		cells_forget(cells, (uint32_t)MIN(value[CELL_BORN], (uint64_t)HISTORY_INTERVALS));
		return NULL;
	}
	bool is_before = value[CELL_BORN] == CELL_BEFORE;

	if ((!is_before && (value[CELL_BORN] >= HISTORY_INTERVALS ||
			    value[CELL_BORN] >= value[CELL_DIED])) ||
	    (value[CELL_DIED] >= HISTORY_INTERVALS && value[CELL_DIED] != CELL_NEVER))
		return "a cell has an impossible interval";
	if (value[CELL_LEAF] > recording_rows(r, RECORDING_LEAVES))
		return "a cell has no leaf";
	const struct cell cell = {(uint32_t)value[CELL_LEAF], (uint16_t)value[CELL_BORN],
				  (uint16_t)value[CELL_DIED], value[CELL_BLOCKS],
				  value[CELL_BYTES], value[CELL_VARIANCE]};

	cells_set(cells, &cell);
	return NULL;
}

/*
 * Converts the cells [@at, @end) of one leaf and one interval of allocation; the last one may be
 * CELL_NEVER.
 */
static const char *put_born(struct recording *r, const struct cell *at, const struct cell *end)
{
	const struct cell *never = end - 1;
	uint64_t blocks = 0, bytes = 0, variance = 0;

	if (never->died != CELL_NEVER)
		return "more was released than allocated";
	for (; at < never; at++) {
		const uint64_t row[] = {r->shift,   at->leaf,  at->born,    at->died,
					at->blocks, at->bytes, at->variance};

		if (__builtin_add_overflow(blocks, at->blocks, &blocks) ||
		    __builtin_add_overflow(bytes, at->bytes, &bytes) ||
		    __builtin_add_overflow(variance, at->variance, &variance))
			return "a cell is too large";
		if (at->died >= recording_rows(r, RECORDING_TIMELINE))
			return "a cell is beyond the timeline";
		recording_add(r, RECORDING_CELLS, row);
	}
	if (blocks > never->blocks || bytes > never->bytes || variance > never->variance)
		return "more was released than allocated";
	if (never->born != CELL_BEFORE && never->born >= recording_rows(r, RECORDING_TIMELINE))
		return "a cell is beyond the timeline";
	if (blocks < never->blocks || bytes < never->bytes) {
		const uint64_t row[] = {r->shift, never->leaf, never->born, CELL_NEVER,
					never->blocks - blocks, never->bytes - bytes,
					never->variance - variance};

		recording_add(r, RECORDING_CELLS, row);
	}
	return NULL;
}

static const char *put_cells(struct recording *r, const struct cell *cell, size_t count)
{
	const char *why = NULL;
	size_t end;

	recording_truncate(r, RECORDING_CELLS, 0);
	for (size_t i = 0; !why && i < count; i = end) {
		end = i + 1;
		while (end < count && cell[end].leaf == cell[i].leaf &&
		       cell[end].born == cell[i].born)
			end++;
		why = put_born(r, &cell[i], &cell[end]);
	}
	return why;
}

static const char *join_cells(struct recording *r)
{
	struct cells cells = {0};
	struct cell *cell = NULL;
	const char *why = NULL;
	uint64_t shift = 0;

	for (size_t row = 0; !why && row < recording_rows(r, RECORDING_CELLS); row++)
		why = add_cell(r, row, &cells, &shift);
	for (; shift < r->shift; shift++)
		cells_merge(&cells);
	if (!why) {
		size_t count = cells_sorted(&cells, &cell);

		why = put_cells(r, cell, count);
	}
	free(cell);
	cells_deinit(&cells);
	return why;
}

const char *recording_join_intervals(struct recording *r)
{
	const char *why = join_timeline(r);

	return why ? why : join_cells(r);
}

/* -- a complete recording -- */

static void merge_timeline(struct recording *r, uint64_t shift, unsigned times)
{
	struct moment *all = xcalloc(HISTORY_INTERVALS, sizeof(*all));

	for (size_t row = 0; row < recording_rows(r, RECORDING_TIMELINE); row++)
		add_moment(r, row, all, &shift);
	for (; times > 0; times--, shift++)
		merge_interval_pairs(all);
	put_moments(r, all, shift);
	free(all);
}

/* The first row says that all cells follow. */
static void merge_cells(struct recording *r, uint64_t shift, unsigned times)
{
	struct cells cells = {0};
	struct cell *cell;

	for (size_t i = 0; i < recording_rows(r, RECORDING_CELLS); i++) {
		uint64_t *const *column = r->table[RECORDING_CELLS].column;
		const struct cell key = {(uint32_t)column[CELL_LEAF][i],
					 (uint16_t)column[CELL_BORN][i],
					 (uint16_t)column[CELL_DIED][i],
					 column[CELL_BLOCKS][i], column[CELL_BYTES][i],
					 column[CELL_VARIANCE][i]};

		if (key.leaf)
			cells_add(&cells, &key);
	}
	for (unsigned i = 0; i < times; i++)
		cells_merge(&cells);
	size_t n = cells_sorted(&cells, &cell);

	recording_truncate(r, RECORDING_CELLS, 0);
	recording_add(r, RECORDING_CELLS, (const uint64_t[CELL_COLUMNS]){shift + times});
	for (size_t i = 0; i < n; i++) {
		const uint64_t row[CELL_COLUMNS] = {shift + times,  cell[i].leaf,
						    cell[i].born,   cell[i].died,
						    cell[i].blocks, cell[i].bytes,
						    cell[i].variance};

		recording_add(r, RECORDING_CELLS, row);
	}
	free(cell);
	cells_deinit(&cells);
}

void recording_merge_intervals(struct recording *r, unsigned times)
{
	if (!recording_rows(r, RECORDING_TIMELINE))
		return;
	uint64_t shift = recording_get(r, RECORDING_TIMELINE, 0, TIME_SHIFT);

	times = MIN(times, MAX_SHIFT - (unsigned)MIN(shift, (uint64_t)MAX_SHIFT));
	merge_timeline(r, shift, times);
	merge_cells(r, shift, times);
}
