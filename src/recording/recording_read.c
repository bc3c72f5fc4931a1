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

/* What the values of a column are below. */
static uint64_t limit_of(const struct recording *r, const struct recording_column *c)
{
	switch (c->unit) {
	case UNIT_TEXT:
		return r->text.count;
	case UNIT_BUCKET:
		return MAX_BUCKET + 1;
	case UNIT_FLAG:
		return 2;
	case UNIT_INDEX:
		return recording_rows(r, c->to);
	case UNIT_INDEX_OR_END:
	case UNIT_OPTIONAL:
	case UNIT_LEAF:
		return recording_rows(r, c->to) + 1;
	default:
		return UINT64_MAX;
	}
}

static bool column_is_valid(const struct recording *r, enum recording_table_id id, unsigned column)
{
	const struct recording_column *c = &recording_table_info[id].column[column];
	uint64_t limit = limit_of(r, c);

	for (size_t i = 0; limit < UINT64_MAX && i < recording_rows(r, id); i++) {
		uint64_t value = recording_get(r, id, i, column);

		if (value >= limit || (c->unit == UNIT_LEAF && !value))
			return false;
	}
	return true;
}

/* Those of CELLS are left to recording_join_intervals. */
static const char *check_references(struct recording *r)
{
	for (int i = 0; i < RECORDING_TABLES; i++) {
		enum recording_table_id id = (enum recording_table_id)i;

		for (unsigned c = 0; c < recording_table_info[id].columns; c++)
			if (id != RECORDING_CELLS && (id != RECORDING_NODES || c != NODE_PARENT) &&
			    !column_is_valid(r, id, c))
				return "a reference leads nowhere";
	}
	for (size_t i = 0; i < recording_rows(r, RECORDING_NODES); i++) {
		if (recording_get(r, RECORDING_NODES, i, NODE_PARENT) > i)
			return "a node comes before its parent";
	}
	return NULL;
}

/* -- keys -- */

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
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_merge_rows(r, (enum recording_table_id)id, MERGE_NEWEST);
	if (!is_numbered(r, RECORDING_LEAVES, LEAF_NUMBER, 1))
		return "a leaf is missing";
	if (!is_numbered(r, RECORDING_THREADS, THREAD_NUMBER, 0))
		return "a thread is missing";
	return NULL;
}

/* Only the last peak written counts. */
static void keep_last_peak(struct recording *r)
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
}

static const char *check_peak(struct recording *r)
{
	keep_last_peak(r);
	bool is_empty = !recording_rows(r, RECORDING_PEAK_AT) ||
			!recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES);

	return is_empty || recording_rows(r, RECORDING_PEAK) ? NULL : "a table is missing";
}

/*
 * Tables that every complete recording has. Files of older versions have no checksum of chunk
 * names, and a chunk with an unknown (damaged) name is skipped.
 */
static const char *check_tables(struct recording *r)
{
	static const enum recording_table_id always[] = {RECORDING_META, RECORDING_TIMELINE,
							 RECORDING_CELLS, RECORDING_PEAK_AT};

	r->is_complete = recording_rows(r, RECORDING_END) > 0;
	for (size_t i = 0; r->is_complete && i < ARRAY_SIZE(always); i++)
		if (!recording_rows(r, always[i]))
			return "a table is missing";
	return NULL;
}

/* A file with samples contains the mean distance between them. */
static const char *find_interval(struct recording *r)
{
	const char *text = recording_meta(r, "heap_sample");

	r->interval = text ? strtoull(text, NULL, 10) : 0;
	return r->interval > 1 && r->interval <= ESTIMATE_INTERVAL_MAX ?
		       NULL :
		       "the distance of samples is missing or impossible";
}

const char *recording_check(struct recording *r, bool is_sampled)
{
	const char *why = check_tables(r) ?: sort_tables(r) ?: check_references(r);

	if (!why && is_sampled)
		why = find_interval(r);
	return why ?: check_peak(r) ?: recording_join_intervals(r);
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
	unsigned wanted = recording_file_columns(id, rd->is_sampled);
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

static const char *check_all(struct unpacker *rd)
{
	const char *why = recording_check(rd->r, rd->is_sampled);

	if (!why)
		recording_read_my_code(rd->r);
	return why;
}

static const char *check_rows(struct unpacker *rd)
{
	return check_references(rd->r) ?: rd->is_sampled ? find_interval(rd->r) : NULL;
}

static int read_file(const char *data, size_t size, const char *(*check)(struct unpacker *rd),
		     struct recording **out, char **why_out)
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
		rd.why = check(&rd);
		at = size;
	}
	if (!rd.why) {
		*out = rd.r;
		return 0;
	}
	*why_out = error_text(&rd, at, size);
	recording_free(rd.r);
	return -EINVAL;
}

int recording_read(const char *data, size_t size, struct recording **out, char **why_out)
{
	return read_file(data, size, check_all, out, why_out);
}

int recording_read_rows(const char *data, size_t size, struct recording **out, char **why_out)
{
	struct recording *checked;
	int rc = recording_read(data, size, &checked, why_out);

	if (rc)
		return rc;
	recording_free(checked);
	return read_file(data, size, check_rows, out, why_out);
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
