/* Texts and tables of a recording. */
#include "recording/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/estimate.h"

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
	free(r->text_slot);
	my_code_deinit(&r->my_code);
	for (int id = 0; id < RECORDING_TABLES; id++)
		recording_clear(r, (enum recording_table_id)id);
	free(r);
}

/* -- texts -- */

static uint32_t hash_text(const char *text, size_t size)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t *find_slot(const struct recording *r, const char *text, size_t size)
{
	uint32_t i = hash_text(text, size) & (r->text_slots - 1);

	for (; r->text_slot[i]; i = (i + 1) & (r->text_slots - 1)) {
		const char *other = r->text.data[r->text_slot[i]];

		if (strlen(other) == size && memcmp(other, text, size) == 0)
			break;
	}
	return &r->text_slot[i];
}

static void grow_slots(struct recording *r)
{
	free(r->text_slot);
	do {
		r->text_slots = r->text_slots ? r->text_slots * 2 : 256;
	} while (r->text.count >= r->text_slots / 2);
	r->text_slot = xcalloc(r->text_slots, sizeof(*r->text_slot));
	for (uint32_t i = 1; i < r->text.count; i++) {
		const char *text = r->text.data[i];

		*find_slot(r, text, strlen(text)) = i;
	}
}

uint32_t recording_text_index(struct recording *r, const char *text, size_t size)
{
	size = strnlen(text, size);
	if (!size)
		return 0;
	if (r->text.count >= r->text_slots / 2)
		grow_slots(r);
	uint32_t *slot = find_slot(r, text, size);

	if (!*slot) {
		*slot = (uint32_t)r->text.count;
		*vec_add(&r->text) = xstrndup(text, size);
	}
	return *slot;
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
