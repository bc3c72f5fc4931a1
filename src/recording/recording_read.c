/*
 * Reads the chunks of a recording. Chunks of an incomplete group (a "sync" ends one) are dropped:
 * ptmem died while writing it. recording_check.c does the rest.
 */
#include "recording/recording_read.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "recording/recording_check.h"
#include "recording/recording_site.h"
#include "recording/recording_write.h"

#define MAX_UNPACKED (UINT32_C(1) << 28)  /* of a chunk, bytes */
#define MAX_ALL (UINT64_C(1) << 30)

struct reader {
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

static uint64_t fail(struct reader *rd, const char *why)
{
	if (!rd->why)
		rd->why = why;
	rd->at = rd->end;
	return 0;
}

static uint64_t get_number(struct reader *rd)
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

static void read_texts(struct reader *rd)
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

static void read_column(struct reader *rd, uint64_t *value, uint64_t rows)
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
static void read_table(struct reader *rd, enum recording_table_id id)
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

static void note_sync(struct reader *rd)
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

static void read_content(struct reader *rd, const uint8_t *head)
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

static void read_chunk(struct reader *rd, const uint8_t *head, uint32_t packed, uint32_t unpacked)
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
static size_t read_chunks(struct reader *rd, const uint8_t *data, size_t size)
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

static void drop_behind_sync(struct reader *rd)
{
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_truncate(rd->r, (enum recording_table_id)id, rd->rows[id]);
	while (rd->r->text.count > rd->texts)
		free(rd->r->text.data[--rd->r->text.count]);
}

/* @at: where reading ended. The caller frees it. */
static char *error_text(const struct reader *rd, size_t at, size_t size)
{
	if (rd->has_another)
		return xasprintf("several recordings, one after the other; the first one is its "
				 "first %zu bytes", at);
	return at == size ? xstrdup(rd->why) : xasprintf("damaged at byte %zu: %s", at, rd->why);
}

int recording_read(const char *data, size_t size, struct recording **out, char **why_out)
{
	struct reader rd = {.r = recording_new()};

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
	struct reader rd = {.r = recording_new()};

	if (has_head(data, size, RECORDING_HEAD))
		read_chunks(&rd, (const uint8_t *)data, size);
	if (!rd.why && rd.has_sync && !rd.has_another)
		return rd.r;
	recording_free(rd.r);
	return NULL;
}
