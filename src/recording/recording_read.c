/* Converts what was read to the form guaranteed by recording_format.h. */
#include "recording/recording_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "profile/estimate.h"
#include "recording/recording.h"
#include "recording/recording_site.h"

/*
 * Converts the rows of a file to those that reports use. A file is written piece by piece while the
 * program runs: rows replace earlier ones with the same key, and intervals may have become longer
 * meanwhile. Nothing in the file is trusted.
 */

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

/*
 * Reads the chunks of a recording. Chunks of an incomplete group (a "sync" ends one) are dropped:
 * ptmem died while writing it. recording_read.c does the rest.
 */

#define MAX_UNPACKED (UINT32_C(1) << 28)  /* of a chunk, bytes */
#define MAX_ALL (UINT64_C(1) << 30)

struct unpacker {
	struct recording *r;
	const uint8_t *at, *end;   /* the rest of the chunk */
	const char *why;           /* NULL: no error */
	/* position of the last "sync" */
	size_t rows[RECORDING_TABLES], texts;
	uint64_t unpacked;         /* number so far */
	uint32_t heads;            /* CRC-32 of the chunk heads since then */
	bool has_sync;
	bool has_unknown;          /* there was a chunk with an unknown name */
	bool has_copy;             /* there was a RECORDING_COPY */
	bool has_another;          /* behind the last chunk another recording begins */
	bool is_sampled;
};

#define HEAD_SIZE (sizeof(RECORDING_HEAD) - 1)
_Static_assert(sizeof(RECORDING_HEAD) == sizeof(RECORDING_HEAD_SAMPLED), "");

static bool has_head(const char *data, size_t size, const char *head)
{
	return size >= HEAD_SIZE && memcmp(data, head, HEAD_SIZE) == 0;
}

bool recording_is(const char *data, size_t size)
{
	return has_head(data, size, RECORDING_HEAD) ||
	       has_head(data, size, RECORDING_HEAD_SAMPLED);
}

static uint64_t fail(struct unpacker *rd, const char *why)
{
	if (!rd->why)
		rd->why = why;
	rd->at = rd->end;
	return 0;
}

static uint64_t get_number(struct unpacker *rd)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (rd->at == rd->end)
			return fail(rd, "a chunk ends within a number");
		uint8_t byte = *rd->at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
	return fail(rd, "a number is too large");
}

static void read_texts(struct unpacker *rd)
{
	uint64_t count = get_number(rd);

	for (; count > 0 && !rd->why; count--) {
		uint64_t size = get_number(rd);

		if (size > (uint64_t)(rd->end - rd->at))
			fail(rd, "a text is longer than its chunk");
		else if (rd->r->text.count >= UINT32_MAX)
			fail(rd, "there are too many texts");
		if (rd->why)
			return;
		*vec_add(&rd->r->text) = xstrndup((const char *)rd->at, size);
		rd->at += size;
	}
}

static void read_column(struct unpacker *rd, uint64_t *value, uint64_t rows)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < rows; i++) {
		uint64_t code = get_number(rd);

		last += code >> 1 ^ -(code & 1);
		value[i] = last;
	}
}

/*
 * Unknown columns come from a newer ptmem, and are skipped. Columns of estimates are 0 in exact
 * recordings.
 */
static void read_table(struct unpacker *rd, enum recording_table_id id)
{
	struct recording_table *t = &rd->r->table[id];
	uint64_t columns = get_number(rd), rows = get_number(rd);
	unsigned all = recording_table_info[id].columns;
	unsigned wanted = rd->is_sampled ? all : recording_table_info[id].exact_columns;
	size_t capacity = t->capacity;

	if (rd->why)
		return;
	if (columns < wanted || columns > 1000 || rows > (uint64_t)(rd->end - rd->at) / columns) {
		fail(rd, "a table is smaller than it says");
		return;
	}
	for (unsigned c = 0; c < all; c++) {
		capacity = t->capacity;
		t->column[c] = xgrow(t->column[c], &capacity, t->rows + rows, sizeof(uint64_t));
	}
	t->capacity = capacity;
	for (unsigned c = 0; c < wanted && !rd->why; c++)
		read_column(rd, t->column[c] + t->rows, rows);
	for (unsigned c = wanted; c < all && rows; c++)
		memset(t->column[c] + t->rows, 0, rows * sizeof(uint64_t));
	if (!rd->why)
		t->rows += rows;
}

static void note_sync(struct unpacker *rd)
{
	/* empty in files of older versions */
	if (rd->at < rd->end && get_number(rd) != rd->heads) {
		fail(rd, "the head of a chunk before it has changed");
		return;
	}
	rd->heads = 0;
	rd->has_sync = true;
	rd->r->is_copy = rd->has_copy;
	rd->texts = rd->r->text.count;
	for (int id = 0; id < RECORDING_TABLES; id++)
		rd->rows[id] = rd->r->table[id].rows;
}

static void read_content(struct unpacker *rd, const uint8_t *head)
{
	if (memcmp(head, RECORDING_SYNC, 4) == 0) {
		note_sync(rd);
		return;
	}
	rd->heads = (uint32_t)crc32(rd->heads, head, RECORDING_CHUNK_HEAD);
	if (memcmp(head, RECORDING_TEXTS, 4) == 0) {
		read_texts(rd);
		return;
	}
	if (memcmp(head, RECORDING_COPY, 4) == 0) {
		rd->has_copy = true;
		return;
	}
	for (int id = 0; id < RECORDING_TABLES; id++) {
		if (memcmp(head, recording_table_info[id].name, 4) == 0) {
			read_table(rd, (enum recording_table_id)id);
			return;
		}
	}
	rd->has_unknown = true;
}

static uint32_t get_u32(const uint8_t *at)
{
	return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
}

static void read_chunk(struct unpacker *rd, const uint8_t *head, uint32_t packed, uint32_t unpacked)
{
	/* the maximum compression ratio of zlib is about 1000 */
	rd->unpacked += unpacked;
	if (unpacked > MAX_UNPACKED || unpacked / 1100 > packed || rd->unpacked > MAX_ALL) {
		fail(rd, "a chunk is larger than it can be");
		return;
	}
	const uint8_t *content = head + RECORDING_CHUNK_HEAD;

	if (crc32(0, content, packed) != get_u32(head + 12)) {
		fail(rd, "the checksum of a chunk is wrong");
		return;
	}
	uint8_t *data = xmalloc((size_t)unpacked + 1);
	uLongf size = unpacked;

	if (uncompress(data, &size, content, packed) != Z_OK || size != unpacked) {
		fail(rd, "a chunk cannot be unpacked");
	} else {
		rd->at = data;
		rd->end = data + size;
		read_content(rd, head);
	}
	free(data);
}

/*
 * Reads chunks until one is incomplete, or the file or this recording ends. Returns the position.
 */
static size_t read_chunks(struct unpacker *rd, const uint8_t *data, size_t size)
{
	size_t at = HEAD_SIZE;

	while (size - at >= RECORDING_CHUNK_HEAD) {
		rd->has_another = recording_is((const char *)data + at, size - at);
		if (rd->has_another)
			break;
		uint32_t packed = get_u32(data + at + 4);

		if (packed > size - at - RECORDING_CHUNK_HEAD)
			break;
		read_chunk(rd, data + at, packed, get_u32(data + at + 8));
		if (rd->why)
			break;
		at += RECORDING_CHUNK_HEAD + packed;
	}
	return at;
}

static void drop_behind_sync(struct unpacker *rd)
{
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_truncate(rd->r, (enum recording_table_id)id, rd->rows[id]);
	while (rd->r->text.count > rd->texts)
		free(rd->r->text.data[--rd->r->text.count]);
}

/* @at: where reading ended. The caller frees it. */
static char *error_text(const struct unpacker *rd, size_t at, size_t size)
{
	if (rd->has_another)
		return xasprintf("several recordings, one after the other; the first one is its "
				 "first %zu bytes", at);
	return at == size ? xstrdup(rd->why) : xasprintf("damaged at byte %zu: %s", at, rd->why);
}

int recording_read(const char *data, size_t size, struct recording **out, char **why_out)
{
	struct unpacker rd = {.r = recording_new()};

	if (!recording_is(data, size)) {
		recording_free(rd.r);
		*why_out = xstrdup("not a recording");
		return -EINVAL;
	}
	rd.is_sampled = has_head(data, size, RECORDING_HEAD_SAMPLED);
	size_t at = read_chunks(&rd, (const uint8_t *)data, size);

	if (rd.has_another) {
		rd.why = "";
	} else if (!rd.why && !rd.has_sync) {
		rd.why = rd.has_unknown ? "damaged: the name of a chunk has changed" :
					  "not complete yet: ptmem has not written the first part "
					  "to its end, or the file was cut";
		at = size;
	}
	if (!rd.why) {
		drop_behind_sync(&rd);
		rd.why = recording_check(rd.r, rd.is_sampled);
		at = size;
	}
	if (!rd.why) {
		recording_read_my_code(rd.r);
		*out = rd.r;
		return 0;
	}
	*why_out = error_text(&rd, at, size);
	recording_free(rd.r);
	return -EINVAL;
}

struct recording *recording_read_tables(const char *data, size_t size)
{
	struct unpacker rd = {.r = recording_new()};

	if (has_head(data, size, RECORDING_HEAD))
		read_chunks(&rd, (const uint8_t *)data, size);
	if (!rd.why && rd.has_sync && !rd.has_another)
		return rd.r;
	recording_free(rd.r);
	return NULL;
}
