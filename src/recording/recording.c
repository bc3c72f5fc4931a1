/* Texts and tables of a recording. */
#include "recording/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/cells.h"
#include "profile/estimate.h"
#include "profile/history.h"

#define TABLE(id, name, json) static const struct recording_column id##_columns[] = {
#define SAME(id, name, json, as)
#define COLUMN(id, name, unit, to, merge, json) \
	{name, UNIT_##unit, RECORDING_##to, MERGE_##merge, FORM_##json},
#define END(prefix) };
#include "recording/recording_schema.h"

const struct recording_table_info recording_table_info[RECORDING_TABLES] = {
#define TABLE(id, name, json) SAME(id, name, json, id)
#define SAME(id, name, json, as) \
	[RECORDING_##id] = {name, ARRAY_SIZE(as##_columns), json, as##_columns},
#define COLUMN(id, name, unit, to, merge, json)
#define END(prefix)
#include "recording/recording_schema.h"
};

unsigned recording_file_columns(enum recording_table_id id, bool is_sampled)
{
	const struct recording_table_info *info = &recording_table_info[id];
	unsigned columns = info->columns;

	while (!is_sampled && columns && info->column[columns - 1].unit == UNIT_VARIANCE)
		columns--;
	return columns;
}

struct recording *recording_new(void)
{
	struct recording *r = xcalloc(1, sizeof(*r));

	*vec_add(&r->text) = xstrdup("");
	r->known_role = xcalloc(1, sizeof(*r->known_role));
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
	vec_release(&r->text, e, free(*e));
	hash_deinit(&r->text_index);
	my_code_deinit(&r->my_code);
	vec_deinit(r->known_role);
	free(r->known_role);
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

void recording_get_row(const struct recording *from, enum recording_table_id id, size_t i,
		       struct recording *r, uint64_t out[static RECORDING_MAX_COLUMNS])
{
	for (unsigned c = 0; c < recording_table_info[id].columns; c++) {
		out[c] = recording_get(from, id, i, c);
		if (recording_table_info[id].column[c].unit == UNIT_TEXT)
			out[c] = recording_string(r, from->text.data[out[c]]);
	}
}

void recording_copy(const struct recording *from, enum recording_table_id id, struct recording *r)
{
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < recording_rows(from, id); i++) {
		recording_get_row(from, id, i, r, row);
		recording_add(r, id, row);
	}
}

void recording_copy_inspection(const struct recording *from, struct recording *r)
{
	for (int id = RECORDING_INSPECTED; from && id < RECORDING_INSPECTED_END; id++)
		recording_copy(from, (enum recording_table_id)id, r);
}

/* -- merging rows -- */

struct key_order {
	const struct recording_table *table;
	unsigned keys;             /* number of key columns */
	unsigned column[RECORDING_MAX_COLUMNS];
};

static struct key_order key_order(const struct recording_table *table,
				  const struct recording_table_info *info, enum column_merge key)
{
	struct key_order o = {.table = table};

	for (unsigned c = 0; c < info->columns; c++)
		if (info->column[c].merge == MERGE_KEY || info->column[c].merge == key)
			o.column[o.keys++] = c;
	return o;
}

static int compare_keys(const struct key_order *o, size_t x, size_t y)
{
	for (unsigned k = 0; k < o->keys; k++) {
		const uint64_t *value = o->table->column[o->column[k]];

		if (value[x] != value[y])
			return value[x] < value[y] ? -1 : 1;
	}
	return 0;
}

/* Rows with equal keys stay in their order. */
static int compare_rows(const void *a, const void *b, void *order)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int keys = compare_keys(order, x, y);

	return keys ? keys : x < y ? -1 : x > y;
}

/* Whether all rows are in the order of their keys, of which none is there twice. */
static bool is_merged(const struct key_order *o)
{
	for (size_t i = 1; i < o->table->rows; i++)
		if (compare_keys(o, i - 1, i) >= 0)
			return false;
	return true;
}

static void merge_row(uint64_t *to, const struct key_order *o, size_t row,
		      const struct recording_table_info *info)
{
	for (unsigned c = 0; c < info->columns; c++) {
		uint64_t value = o->table->column[c][row];
		enum column_merge merge = info->column[c].merge;

		to[c] = merge == MERGE_SUM     ? value + to[c] :
			merge == MERGE_MAXIMUM ? MAX(value, to[c]) : value;
	}
}

void recording_merge_rows(struct recording *r, enum recording_table_id id, enum column_merge key)
{
	const struct recording_table_info *info = &recording_table_info[id];
	struct recording_table old = r->table[id];
	struct key_order order = key_order(&old, info, key);

	if (!order.keys || is_merged(&order))
		return;
	size_t *row = xcalloc(old.rows, sizeof(*row));

	for (size_t i = 0; i < old.rows; i++)
		row[i] = i;
	qsort_r(row, old.rows, sizeof(*row), compare_rows, &order);
	r->table[id] = (struct recording_table){0};
	for (size_t i = 0, first; i < old.rows;) {
		uint64_t value[RECORDING_MAX_COLUMNS] = {0};

		for (first = i; i < old.rows && !compare_keys(&order, row[first], row[i]); i++) {
			if (key == MERGE_NEWEST)
				memset(value, 0, sizeof(value));
			merge_row(value, &order, row[i], info);
		}
		recording_add(r, id, value);
	}
	for (unsigned c = 0; c < info->columns; c++)
		free(old.column[c]);
	free(row);
}

/* -- values -- */

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
	if (r->has_bounds)
		return sqrt(variance);
	return r->interval ? estimate_error(r->interval, (uint64_t)fmin(variance, 0x1p63)) : 0;
}

double recording_square_error(const struct recording *r, double variance)
{
	if (r->has_bounds)
		return variance;
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

		for (int c = 0; a->is_there && b->is_there && c < TIME_COLUMNS; c++) {
			enum column_merge merge =
				recording_table_info[RECORDING_TIMELINE].column[c].merge;

			if (merge == MERGE_MAXIMUM)
				both.value[c] = MAX(a->value[c], b->value[c]);
			else if (merge == MERGE_KNOWN && !b->value[c])
				both.value[c] = a->value[c];
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
