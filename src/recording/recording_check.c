/*
 * Converts the rows of a file to those that reports use. A file is written piece by piece while the
 * program runs: rows replace earlier ones with the same key, and intervals may have become longer
 * meanwhile. Nothing in the file is trusted.
 */
#include "recording/recording_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/estimate.h"
#include "recording/recording_intervals.h"

#define MAX_BUCKET 64u

/* -- references -- */

static bool column_below(const struct recording *r, enum recording_table_id id, unsigned column,
			 uint64_t limit)
{
	const struct recording_table *t = &r->table[id];

	for (size_t i = 0; i < t->rows; i++)
		if (t->column[column][i] >= limit)
			return false;
	return true;
}

struct reference {
	uint8_t table, column;
	int8_t to;         /* table; TO_TEXT, TO_BUCKET */
	uint8_t optional;  /* 1: index + 1, 0 = none; or the last + 1 has a meaning of its own */
};

enum { TO_TEXT = -1, TO_BUCKET = -2, TO_LEAF = -3, TO_FLAG = -4 };

static const struct reference references[] = {
	{RECORDING_META, META_KEY, TO_TEXT, 0},
	{RECORDING_META, META_VALUE, TO_TEXT, 0},
	{RECORDING_OBJECTS, OBJECT_PATH, TO_TEXT, 0},
	{RECORDING_OBJECTS, OBJECT_BUILD_ID, TO_TEXT, 0},
	{RECORDING_FRAMES, FRAME_FUNCTION, TO_TEXT, 0},
	{RECORDING_FRAMES, FRAME_FILE, TO_TEXT, 0},
	{RECORDING_FRAMES, FRAME_OBJECT, RECORDING_OBJECTS, 1},
	{RECORDING_FRAMES, FRAME_INLINED, TO_FLAG, 0},
	{RECORDING_NODES, NODE_FRAME, RECORDING_FRAMES, 0},
	{RECORDING_LEAVES, LEAF_NODE, RECORDING_NODES, 1},
	{RECORDING_SIZES, BUCKET_LEAF, TO_LEAF, 0},
	{RECORDING_SIZES, BUCKET_NUMBER, TO_BUCKET, 0},
	{RECORDING_LIFETIMES, BUCKET_LEAF, TO_LEAF, 0},
	{RECORDING_LIFETIMES, BUCKET_NUMBER, TO_BUCKET, 0},
	{RECORDING_SHARES, SHARE_LEAF, TO_LEAF, 0},
	{RECORDING_SHARES, SHARE_THREAD, RECORDING_THREADS, 0},
	{RECORDING_PEAK, PEAK_LEAF, TO_LEAF, 0},
	{RECORDING_MARKERS, MARKER_KIND, TO_TEXT, 0},
	{RECORDING_MARKERS, MARKER_TEXT, TO_TEXT, 0},
	{RECORDING_LEAKS, LEAK_LEAF, TO_LEAF, 0},
	{RECORDING_LEAKS, LEAK_KIND, TO_TEXT, 0},
	{RECORDING_RELEASES, RELEASE_NODE, RECORDING_NODES, 1},
	{RECORDING_CALLS, CALL_FUNCTION, TO_TEXT, 0},
	{RECORDING_INSPECTION, INSPECTION_MALLOC, TO_TEXT, 0},
	{RECORDING_DOUBTS, DOUBT_TEXT, TO_TEXT, 0},
	{RECORDING_RESIDENT, RESIDENT_NAME, TO_TEXT, 0},
	{RECORDING_ARENAS, ARENA_IS_MAIN, TO_FLAG, 0},
	{RECORDING_PINNED, PINNED_ARENA, RECORDING_ARENAS, 0},
	{RECORDING_HEAPS, HEAP_ARENA, RECORDING_ARENAS, 1},
	{RECORDING_HEAP_CELLS, HEAP_CELL_HEAP, RECORDING_HEAPS, 0},
	{RECORDING_TYPES, TYPE_NAME, TO_TEXT, 0},
	{RECORDING_PINS, PIN_LEAF, TO_LEAF, 0},
	{RECORDING_ADVICE, ADVICE_TEXT, TO_TEXT, 0},
	{RECORDING_ADVICE, ADVICE_IS_LIMIT, TO_FLAG, 0},
};

static uint64_t limit_of(const struct recording *r, const struct reference *ref)
{
	switch (ref->to) {
	case TO_TEXT:
		return r->text.count;
	case TO_BUCKET:
		return MAX_BUCKET + 1;
	case TO_FLAG:
		return 2;
	case TO_LEAF: /* numbered from 1; has_zero refuses 0 */
		return recording_rows(r, RECORDING_LEAVES) + 1;
	default:
		return recording_rows(r, (enum recording_table_id)ref->to) + ref->optional;
	}
}

static bool has_zero(const struct recording *r, const struct reference *ref)
{
	const struct recording_table *t = &r->table[ref->table];

	for (size_t i = 0; i < t->rows; i++)
		if (!t->column[ref->column][i])
			return true;
	return false;
}

static const char *check_references(const struct recording *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(references); i++) {
		const struct reference *ref = &references[i];

		if (!column_below(r, (enum recording_table_id)ref->table, ref->column,
				  limit_of(r, ref)) ||
		    (ref->to == TO_LEAF && has_zero(r, ref)))
			return "a reference leads nowhere";
	}
	for (size_t i = 0; i < recording_rows(r, RECORDING_NODES); i++) {
		if (recording_get(r, RECORDING_NODES, i, NODE_PARENT) > i)
			return "a node comes before its parent";
	}
	return NULL;
}

/* -- keys -- */

struct key_order {
	const struct recording_table *table;
	unsigned keys;         /* number of key columns */
	unsigned column[2];
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct key_order *o = ctx;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	for (unsigned k = 0; k < o->keys; k++) {
		const uint64_t *value = o->table->column[o->column[k]];

		if (value[x] != value[y])
			return value[x] < value[y] ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

static bool same_key(const struct key_order *o, size_t x, size_t y)
{
	for (unsigned k = 0; k < o->keys; k++)
		if (o->table->column[o->column[k]][x] != o->table->column[o->column[k]][y])
			return false;
	return true;
}

/* Sorts the rows by their keys; of rows with equal keys the last one is kept. */
static void keep_newest(struct recording *r, enum recording_table_id id, struct key_order order)
{
	struct recording_table *t = &r->table[id], old = *t;
	size_t *row = xcalloc(old.rows + 1, sizeof(*row)), n = 0;

	order.table = &old;
	for (size_t i = 0; i < old.rows; i++)
		row[i] = i;
	qsort_r(row, old.rows, sizeof(*row), compare_rows, &order);
	for (size_t i = 0; i < old.rows; i++)
		if (i + 1 == old.rows || !same_key(&order, row[i], row[i + 1]))
			row[n++] = row[i];
	for (int c = 0; n > 0 && c < recording_table_info[id].columns; c++) {
		uint64_t *value = xcalloc(n, sizeof(*value));

		for (size_t i = 0; i < n; i++)
			value[i] = old.column[c][row[i]];
		t->column[c] = value;
		free(old.column[c]);
	}
	if (n > 0) {
		t->rows = n;
		t->capacity = n;
	}
	free(row);
}

/* Whether the key column of the sorted rows is @first, @first + 1, ... */
static bool is_numbered(const struct recording *r, enum recording_table_id id, unsigned column,
			uint64_t first)
{
	for (size_t i = 0; i < recording_rows(r, id); i++)
		if (recording_get(r, id, i, column) != first + i)
			return false;
	return true;
}

static const char *sort_tables(struct recording *r)
{
	const struct key_order buckets = {.keys = 2, .column = {BUCKET_LEAF, BUCKET_NUMBER}};

	keep_newest(r, RECORDING_LEAVES, (struct key_order){.keys = 1, .column = {LEAF_NUMBER}});
	keep_newest(r, RECORDING_THREADS,
		    (struct key_order){.keys = 1, .column = {THREAD_NUMBER}});
	keep_newest(r, RECORDING_RELEASES,
		    (struct key_order){.keys = 1, .column = {RELEASE_NODE}});
	keep_newest(r, RECORDING_SIZES, buckets);
	keep_newest(r, RECORDING_LIFETIMES, buckets);
	keep_newest(r, RECORDING_SHARES,
		    (struct key_order){.keys = 2, .column = {SHARE_LEAF, SHARE_THREAD}});
	keep_newest(r, RECORDING_CALLS, (struct key_order){.keys = 1, .column = {CALL_FUNCTION}});
	if (!is_numbered(r, RECORDING_LEAVES, LEAF_NUMBER, 1))
		return "a leaf is missing";
	if (!is_numbered(r, RECORDING_THREADS, THREAD_NUMBER, 0))
		return "a thread is missing";
	return NULL;
}

/* Only the last peak written counts. */
static const char *keep_last_peak(struct recording *r)
{
	struct recording_table *t = &r->table[RECORDING_PEAK], *at = &r->table[RECORDING_PEAK_AT];
	size_t kept = 0;

	for (size_t i = 0; i < t->rows; i++) {
		if (t->column[PEAK_MOMENT][i] + 1 != at->rows)
			continue;
		for (int c = 0; c < PEAK_COLUMNS; c++)
			t->column[c][kept] = t->column[c][i];
		kept++;
	}
	t->rows = kept;
	for (int c = 0; at->rows > 0 && c < PEAK_AT_COLUMNS; c++)
		at->column[c][0] = at->column[c][at->rows - 1];
	at->rows = MIN(at->rows, (size_t)1);
	keep_newest(r, RECORDING_PEAK, (struct key_order){.keys = 1, .column = {PEAK_LEAF}});
	return NULL;
}

/* A file with samples contains the mean distance between them. */
static const char *find_interval(struct recording *r, bool is_sampled)
{
	const char *text = is_sampled ? recording_meta(r, "heap_sample") : NULL;

	if (!is_sampled)
		return NULL;
	r->interval = text ? strtoull(text, NULL, 10) : 0;
	return r->interval > 1 && r->interval <= ESTIMATE_INTERVAL_MAX ?
		       NULL :
		       "the distance of samples is missing or impossible";
}

/* -- tables -- */

/*
 * Tables that every complete recording has. Files of older versions have no checksum of chunk
 * names, and a chunk with an unknown (damaged) name is skipped.
 */
static const char *check_tables(const struct recording *r)
{
	static const enum recording_table_id always[] = {RECORDING_META, RECORDING_TIMELINE,
							 RECORDING_CELLS, RECORDING_PEAK_AT};

	if (!r->is_complete)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (!recording_rows(r, always[i]))
			return "a table is missing";
	return NULL;
}

static const char *check_peak(const struct recording *r)
{
	bool is_empty = !recording_rows(r, RECORDING_PEAK_AT) ||
			!recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES);

	return is_empty || recording_rows(r, RECORDING_PEAK) ? NULL : "a table is missing";
}

const char *recording_check(struct recording *r, bool is_sampled)
{
	r->is_complete = recording_rows(r, RECORDING_END) > 0;
	const char *why = check_tables(r);

	if (!why)
		why = sort_tables(r);
	if (!why)
		why = check_references(r);
	if (!why)
		why = find_interval(r, is_sampled);
	if (!why)
		why = keep_last_peak(r);
	if (!why)
		why = check_peak(r);
	if (!why)
		why = recording_join_intervals(r);
	return why;
}
