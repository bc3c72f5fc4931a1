/* Texts and tables of a recording. */
#include "recording/recording.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const struct recording_table_info recording_table_info[RECORDING_TABLES] = {
	[RECORDING_META] = {"meta", META_COLUMNS},
	[RECORDING_OBJECTS] = {"objs", OBJECT_COLUMNS},
	[RECORDING_FRAMES] = {"frms", FRAME_COLUMNS},
	[RECORDING_NODES] = {"node", NODE_COLUMNS},
	[RECORDING_LEAVES] = {"leaf", LEAF_COLUMNS},
	[RECORDING_SIZES] = {"size", BUCKET_COLUMNS},
	[RECORDING_LIFETIMES] = {"life", BUCKET_COLUMNS},
	[RECORDING_SHARES] = {"shar", SHARE_COLUMNS},
	[RECORDING_THREADS] = {"thrd", THREAD_COLUMNS},
	[RECORDING_TIMELINE] = {"time", TIME_COLUMNS},
	[RECORDING_CELLS] = {"cell", CELL_COLUMNS},
	[RECORDING_PEAK_AT] = {"pkat", PEAK_AT_COLUMNS},
	[RECORDING_PEAK] = {"peak", PEAK_COLUMNS},
	[RECORDING_MARKERS] = {"mark", MARKER_COLUMNS},
	[RECORDING_LEAKS] = {"leak", LEAK_COLUMNS},
	[RECORDING_RELEASES] = {"rels", RELEASE_COLUMNS},
	[RECORDING_END] = {"end.", END_COLUMNS},
};

struct recording *recording_new(void)
{
	struct recording *r = xcalloc(1, sizeof(*r));

	*vec_add(&r->text) = xstrdup("");
	return r;
}

void recording_free(struct recording *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->text.count; i++)
		free(r->text.data[i]);
	vec_deinit(&r->text);
	free(r->text_slot);
	for (int id = 0; id < RECORDING_TABLES; id++)
		for (int c = 0; c < RECORDING_MAX_COLUMNS; c++)
			free(r->table[id].column[c]);
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
	r->text_slots = r->text_slots ? r->text_slots * 2 : 256;
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
