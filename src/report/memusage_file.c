/*
 * Reads memusage's data files. They have no magic number, so only the size is checked, and that
 * record 0 has no heap.
 *
 * memusage writes through a buffer of two halves and, when it ends just after it wrote the first
 * half, writes that half again. The file does not contain the size of the halves, but only a size
 * whose double divides the number of records qualifies.
 */
#include "report/memusage_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define HEADER_RECORDS 2
#define MAX_HALF 32768

static uint64_t read_u64(const char *at)
{
	uint64_t value = 0;

	for (size_t i = 8; i-- > 0;)
		value = value << 8 | (uint8_t)at[i];
	return value;
}

static struct memusage_record read_record(const char *at)
{
	return (struct memusage_record){.heap = read_u64(at),
					.stack = read_u64(at + 8),
					.time = read_u64(at + 16)};
}

/* How many of the @count records at @data are a second copy of the last half. */
static size_t count_duplicates(const char *data, size_t count)
{
	for (size_t half = 1; half <= MAX_HALF && 2 * half <= count; half++) {
		const char *last = data + (count - half) * MEMUSAGE_RECORD_SIZE;
		size_t size = half * MEMUSAGE_RECORD_SIZE;

		if (count % (2 * half) == 0 && !memcmp(last, last - size, size))
			return half;
	}
	return 0;
}

static void find_peaks(struct memusage_file *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct memusage_record *r = &f->record[i];

		f->peak_heap = MAX(f->peak_heap, r->heap);
		f->peak_stack = MAX(f->peak_stack, r->stack);
		f->peak_total = MAX(f->peak_total, r->heap + r->stack);
	}
}

static void read_records(struct memusage_file *f, const char *data)
{
	f->record = xcalloc(MAX(f->count, 1), sizeof(*f->record));
	for (size_t i = 0; i < f->count; i++) {
		f->record[i] = read_record(data + i * MEMUSAGE_RECORD_SIZE);
		f->start = MIN(f->start, f->record[i].time);
		f->end = MAX(f->end, f->record[i].time);
	}
}

static int parse(const char *data, size_t size, struct memusage_file **file_out, char **why_out)
{
	if (size % MEMUSAGE_RECORD_SIZE || size < HEADER_RECORDS * MEMUSAGE_RECORD_SIZE) {
		*why_out = xasprintf(
			"not a memusage data file: %zu bytes are not two or more 24-byte records",
			size);
		return -EINVAL;
	}
	struct memusage_record total = read_record(data),
			       peaks = read_record(data + MEMUSAGE_RECORD_SIZE);

	if (total.heap) {
		*why_out = xstrdup("not a memusage data file: its first record has a heap");
		return -EINVAL;
	}
	struct memusage_file *f = xcalloc(1, sizeof(*f));
	const char *records = data + HEADER_RECORDS * MEMUSAGE_RECORD_SIZE;

	f->count = size / MEMUSAGE_RECORD_SIZE - HEADER_RECORDS;
	f->count -= count_duplicates(records, f->count);
	f->start = total.time;
	f->end = MAX(peaks.time, total.time);
	f->peak_heap = peaks.heap;
	f->peak_stack = peaks.stack;
	f->peak_total = total.stack;
	f->is_complete = peaks.heap || peaks.stack || total.stack || !f->count;
	read_records(f, records);
	if (!f->is_complete)
		find_peaks(f);
	*file_out = f;
	return 0;
}

int memusage_file_parse(char *data, size_t size, struct memusage_file **file_out, char **why_out)
{
	int err = parse(data, size, file_out, why_out);

	free(data);
	return err;
}

void memusage_file_free(struct memusage_file *file)
{
	if (!file)
		return;
	free(file->record);
	free(file);
}
