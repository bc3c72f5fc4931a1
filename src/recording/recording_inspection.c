/* See recording_inspection.h. Its numbers are never estimates. */
#include "recording/recording_inspection.h"

#include <inttypes.h>
#include <string.h>

#include "inspect/account.h"
#include "recording/recording_columns.h"

/* The row's description; its name if a newer ptmem has written it. */
static void put_row_text(FILE *out, const struct recording *r, uint64_t value)
{
	const char *text = r->text.data[value];

	for (size_t i = 0; i < ROW_COUNT; i++)
		if (strcmp(r->text.data[value], inspect_row_name[i]) == 0)
			text = inspect_row_text[i];
	recording_put_string(out, text);
}

static const struct json_column doubts[] = {
	{"text", DOUBT_TEXT, recording_put_text, ALWAYS},
	{0},
};
static const struct json_column rows[] = {
	{"name", RESIDENT_NAME, recording_put_text, ALWAYS},
	{"text", RESIDENT_NAME, put_row_text, ALWAYS},
	{"resident", RESIDENT_BYTES, recording_put_number, ALWAYS},
	{"swapped", RESIDENT_SWAPPED, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column arenas[] = {
	{"address", ARENA_ADDRESS, recording_put_address, ALWAYS},
	{"main", ARENA_IS_MAIN, recording_put_number, ALWAYS},
	{"threads", ARENA_THREADS, recording_put_number, ALWAYS},
	{"system", ARENA_SYSTEM, recording_put_number, ALWAYS},
	{"resident", ARENA_RESIDENT, recording_put_number, ALWAYS},
	{"swapped", ARENA_SWAPPED, recording_put_number, ALWAYS},
	{"live_blocks", ARENA_LIVE_BLOCKS, recording_put_number, ALWAYS},
	{"live_bytes", ARENA_LIVE_BYTES, recording_put_number, ALWAYS},
	{"free", ARENA_FREE, recording_put_number, ALWAYS},
	{"trim", ARENA_TRIM, recording_put_number, ALWAYS},
	{"free_pages", ARENA_FREE_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column pinned[] = {
	{"arena", PINNED_ARENA, recording_put_number, ALWAYS},
	{"live_bytes", PINNED_LIVE_BYTES, recording_put_number, ALWAYS},
	{"pages", PINNED_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column heaps[] = {
	{"arena", HEAP_ARENA, recording_put_number, ALWAYS},
	{"start", HEAP_START, recording_put_address, ALWAYS},
	{"end", HEAP_END, recording_put_address, ALWAYS},
	{0},
};
static const struct json_column cells[] = {
	{"heap", HEAP_CELL_HEAP, recording_put_number, ALWAYS},
	{"pages", HEAP_CELL_PAGES, recording_put_number, ALWAYS},
	{"live", HEAP_CELL_LIVE, recording_put_number, ALWAYS},
	{"nearly_empty", HEAP_CELL_NEARLY_EMPTY, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column types[] = {
	{"name", TYPE_NAME, recording_put_text, ALWAYS},
	{"blocks", TYPE_BLOCKS, recording_put_number, ALWAYS},
	{"bytes", TYPE_BLOCK_BYTES, recording_put_number, ALWAYS},
	{"nearly_empty_pages", TYPE_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column pins[] = {
	{"leaf", PIN_LEAF, recording_put_index, ALWAYS},
	{"nearly_empty_pages", PIN_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column advice[] = {
	{"text", ADVICE_TEXT, recording_put_text, ALWAYS},
	{"bytes", ADVICE_BYTES, recording_put_number, ALWAYS},
	{"limit", ADVICE_IS_LIMIT, recording_put_number, ALWAYS},
	{0},
};

static const struct {
	const char *name;
	enum recording_table_id id;
	const struct json_column *columns;
} tables[] = {
	{"doubts", RECORDING_DOUBTS, doubts}, {"rows", RECORDING_RESIDENT, rows},
	{"arenas", RECORDING_ARENAS, arenas}, {"pinned", RECORDING_PINNED, pinned},
	{"heaps", RECORDING_HEAPS, heaps},    {"cells", RECORDING_HEAP_CELLS, cells},
	{"types", RECORDING_TYPES, types},    {"pins", RECORDING_PINS, pins},
	{"advice", RECORDING_ADVICE, advice},
};

void recording_inspection_add(const struct recording *from, struct recording *r)
{
	static const struct {
		enum recording_table_id id;
		uint32_t texts;
	} copied[] = {
		{RECORDING_INSPECTION, 1u << INSPECTION_MALLOC},
		{RECORDING_DOUBTS, 1u << DOUBT_TEXT}, {RECORDING_RESIDENT, 1u << RESIDENT_NAME},
		{RECORDING_ARENAS, 0}, {RECORDING_PINNED, 0}, {RECORDING_HEAPS, 0},
		{RECORDING_HEAP_CELLS, 0}, {RECORDING_TYPES, 1u << TYPE_NAME},
		{RECORDING_PINS, 0}, {RECORDING_ADVICE, 1u << ADVICE_TEXT},
	};

	for (size_t i = 0; from && i < ARRAY_SIZE(copied); i++)
		recording_copy(from, copied[i].id, copied[i].texts, r);
}

void recording_inspection_put(struct recording_out *out, const struct recording *r)
{
	recording_write_rows(out, r, RECORDING_INSPECTION, 0);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		recording_write_rows(out, r, tables[i].id, 0);
}

/* The only row. */
static void put_head(FILE *out, const struct recording *r)
{
	uint64_t row[INSPECTION_COLUMNS];

	for (unsigned c = 0; c < INSPECTION_COLUMNS; c++)
		row[c] = recording_get(r, RECORDING_INSPECTION, 0, c);
	fprintf(out, "{\"time\":%" PRIu64 ",\"malloc\":", row[INSPECTION_TIME]);
	recording_put_text(out, r, row[INSPECTION_MALLOC]);
	fprintf(out, ",\"rss\":%" PRIu64 ",\"swap\":%" PRIu64 ",\"stopped\":%.3f",
		row[INSPECTION_RSS], row[INSPECTION_SWAP], (double)row[INSPECTION_STOPPED] / 1e3);
	fprintf(out, ",\"page\":%u,\"pages_per_cell\":%" PRIu64, PAGE_SIZE_MIN,
		row[INSPECTION_PAGES_PER_CELL]);
}

void recording_inspection_write(FILE *out, const struct recording *r)
{
	if (!recording_rows(r, RECORDING_INSPECTION)) {
		fputs("null", out);
		return;
	}
	put_head(out, r);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		fprintf(out, ",\n\"%s\":{", tables[i].name);
		recording_put_columns(out, r, tables[i].id, tables[i].columns);
		putc('}', out);
	}
	putc('}', out);
}
