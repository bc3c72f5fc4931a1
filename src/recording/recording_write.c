/* Encodes and compresses chunks. The stream records write errors. */
#include "recording/recording_format.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/log.h"

/* Level 9 makes the file an eighth smaller, but doubles the cost of recording a compiler. */
#define LEVEL 1
#define MAX_ROWS (UINT32_C(1) << 20) /* of a chunk */
#define MAX_TEXT (UINT32_C(1) << 24) /* bytes */

struct buffer {
	VEC(uint8_t) byte;
};

static void put_byte(struct buffer *b, uint8_t byte)
{
	*vec_add(&b->byte) = byte;
}

static void put_number(struct buffer *b, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		put_byte(b, (uint8_t)(value | 128));
	put_byte(b, (uint8_t)value);
}

static void put_column(struct buffer *b, const uint64_t *value, size_t rows)
{
	uint64_t last = 0;

	for (size_t i = 0; i < rows; i++) {
		uint64_t difference = value[i] - last;

		put_number(b, difference << 1 ^ -(difference >> 63));
		last = value[i];
	}
}

static void put_u32(uint8_t *at, size_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Writes the chunk, and empties the buffer. */
static void write_chunk(struct recording_out *out, const char *name, struct buffer *b)
{
	uLongf size = compressBound(b->byte.count);
	uint8_t *packed = xmalloc(size), head[RECORDING_CHUNK_HEAD];
	static const uint8_t nothing;

	CHECK(compress2(packed, &size, b->byte.count ? b->byte.data : &nothing, b->byte.count,
			LEVEL) == Z_OK);
	memcpy(head, name, 4);
	put_u32(&head[4], size);
	put_u32(&head[8], b->byte.count);
	put_u32(&head[12], crc32(0, packed, (uInt)size));
	out->heads = (uint32_t)crc32(out->heads, head, sizeof(head));
	fwrite(head, sizeof(head), 1, out->file);
	fwrite(packed, size, 1, out->file);
	free(packed);
	vec_deinit(&b->byte);
}

void recording_write_head(struct recording_out *out, const struct recording *r)
{
	fputs(r->interval ? RECORDING_HEAD_SAMPLED : RECORDING_HEAD, out->file);
}

void recording_write_texts(struct recording_out *out, const struct recording *r, size_t first)
{
	size_t end = MAX(first, (size_t)1);

	while (end < r->text.count) {
		struct buffer b = {0};
		size_t size = 0;

		for (first = end; end < r->text.count && size < MAX_TEXT; end++)
			size += strlen(r->text.data[end]);
		put_number(&b, end - first);
		for (size_t i = first; i < end; i++) {
			size = strlen(r->text.data[i]);
			put_number(&b, size);
			vec_reserve(&b.byte, b.byte.count + size);
			memcpy(&b.byte.data[b.byte.count], r->text.data[i], size);
			b.byte.count += size;
		}
		write_chunk(out, RECORDING_TEXTS, &b);
	}
}

void recording_write_rows(struct recording_out *out, const struct recording *r,
			  enum recording_table_id id, size_t first)
{
	const struct recording_table *t = &r->table[id];
	unsigned columns = recording_file_columns(id, r->interval);

	for (size_t rows; first < t->rows; first += rows) {
		struct buffer b = {0};

		rows = MIN(t->rows - first, (size_t)MAX_ROWS);
		put_number(&b, columns);
		put_number(&b, rows);
		for (unsigned c = 0; c < columns; c++)
			put_column(&b, t->column[c] + first, rows);
		write_chunk(out, recording_table_info[id].name, &b);
	}
}

void recording_write_copy(struct recording_out *out)
{
	struct buffer b = {0};

	write_chunk(out, RECORDING_COPY, &b);
}

void recording_write_sync(struct recording_out *out)
{
	struct buffer b = {0};

	put_number(&b, out->heads);
	write_chunk(out, RECORDING_SYNC, &b);
	out->heads = 0;
}

int recording_write(FILE *file, const struct recording *r)
{
	struct recording_out out = {.file = file};

	recording_write_head(&out, r);
	recording_write_texts(&out, r, 1);
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_write_rows(&out, r, (enum recording_table_id)id, 0);
	if (r->is_copy)
		recording_write_copy(&out);
	recording_write_sync(&out);
	errno = 0;
	return fflush(file) || ferror(file) ? (errno ? -errno : -EIO) : 0;
}
