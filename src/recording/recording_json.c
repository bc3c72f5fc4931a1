#include "recording/recording_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "inspect/account.h"
#include "profile/cells.h"
#include "profile/estimate.h"
#include "recording/recording_site.h"

void recording_put_string(FILE *out, const char *text)
{
	if (text)
		json_put_text(out, text, strlen(text));
	else
		fputs("null", out);
}

static const char *recording_text_at(const struct recording *r, uint64_t index)
{
	return index ? r->text.data[index] : NULL;
}

void recording_put_number(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRIu64, value);
}

void recording_put_count(FILE *out, const struct recording *r, uint64_t value)
{
	if (r->interval && value % ESTIMATE_UNIT)
		fprintf(out, "%.4f", (double)value / (double)ESTIMATE_UNIT);
	else
		recording_put_number(out, r, r->interval ? value / ESTIMATE_UNIT : value);
}

/* In bytes squared. */
void recording_put_variance(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%.9g", recording_square_error(r, (double)value));
}

/* Of an index + 1: -1 = none. */
/* Of an index + 1; -1 = none. */
static void put_index(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRId64, (int64_t)value - 1);
}

/* -1 = before the first one, or never. */
static void put_interval(FILE *out, const struct recording *r, uint64_t value)
{
	bool is_outside = value == CELL_NEVER || value == CELL_BEFORE;

	fprintf(out, "%" PRId64, is_outside ? -1 : (int64_t)value);
}

static void put_text(FILE *out, const struct recording *r, uint64_t value)
{
	recording_put_string(out, recording_text_at(r, value));
}

static void put_address(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "\"0x%" PRIx64 "\"", value);
}

/* Of bytes + 1: null = unknown. */
/* Of bytes + 1; null = unknown. */
static void put_sample(FILE *out, const struct recording *r, uint64_t value)
{
	if (value)
		fprintf(out, "%" PRIu64, value - 1);
	else
		fputs("null", out);
}

bool recording_knows_temporary(const struct recording *r)
{
	return !r->interval || r->temporary_below;
}

static void put_column(FILE *out, const struct recording *r, enum recording_table_id id,
		       const struct json_column *c)
{
	fprintf(out, "\"%s\":", c->name);
	if (c->when == OF_TEMPORARY && !recording_knows_temporary(r)) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		if (i > 0)
			putc(',', out);
		c->put(out, r, recording_get(r, id, i, c->column));
	}
	putc(']', out);
}

/* `"name":[...]` for each of @c, which ends with an element without a name. */
static void recording_put_columns(FILE *out, const struct recording *r, enum recording_table_id id,
				  const struct json_column *c)
{
	for (size_t i = 0; c[i].name; i++) {
		if (c[i].when == OF_SAMPLES && !r->interval)
			continue;
		if (i > 0)
			fputs(",\n", out);
		put_column(out, r, id, &c[i]);
	}
}

/*
 * The same for one column of the timeline, after a comma; sums become what each interval added.
 * Converts cumulative sums to what each interval added.
 */
static void recording_put_steps(FILE *out, const struct recording *r, const struct json_column *c)
{
	uint64_t last = 0;

	fprintf(out, ",\n\"%s\":[", c->name);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++) {
		uint64_t sum = recording_get(r, RECORDING_TIMELINE, i, c->column);

		if (i > 0)
			putc(',', out);
		c->put(out, r, sum - last);
		last = sum;
	}
	putc(']', out);
}

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
	{"text", DOUBT_TEXT, put_text, ALWAYS},
	{0},
};
static const struct json_column resident_rows[] = {
	{"name", RESIDENT_NAME, put_text, ALWAYS},
	{"text", RESIDENT_NAME, put_row_text, ALWAYS},
	{"resident", RESIDENT_BYTES, recording_put_number, ALWAYS},
	{"swapped", RESIDENT_SWAPPED, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column arenas[] = {
	{"address", ARENA_ADDRESS, put_address, ALWAYS},
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
	{"start", HEAP_START, put_address, ALWAYS},
	{"end", HEAP_END, put_address, ALWAYS},
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
	{"name", TYPE_NAME, put_text, ALWAYS},
	{"blocks", TYPE_BLOCKS, recording_put_number, ALWAYS},
	{"bytes", TYPE_BLOCK_BYTES, recording_put_number, ALWAYS},
	{"nearly_empty_pages", TYPE_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column pins[] = {
	{"leaf", PIN_LEAF, put_index, ALWAYS},
	{"nearly_empty_pages", PIN_PAGES, recording_put_number, ALWAYS},
	{0},
};
static const struct json_column advice[] = {
	{"text", ADVICE_TEXT, put_text, ALWAYS},
	{"bytes", ADVICE_BYTES, recording_put_number, ALWAYS},
	{"limit", ADVICE_IS_LIMIT, recording_put_number, ALWAYS},
	{0},
};

static const struct {
	const char *name;
	enum recording_table_id id;
	const struct json_column *columns;
} tables[] = {
	{"doubts", RECORDING_DOUBTS, doubts}, {"rows", RECORDING_RESIDENT, resident_rows},
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
	put_text(out, r, row[INSPECTION_MALLOC]);
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

/* The tables of a recording as columns of JSON. */

/* -- meta -- */

static void put_meta_text(FILE *out, const struct recording *r, const char *key)
{
	fprintf(out, "\"%s\":", key);
	recording_put_string(out, recording_meta(r, key));
	putc(',', out);
}

static double meta_number(const struct recording *r, const char *key)
{
	const char *value = recording_meta(r, key);

	double number = value ? strtod(value, NULL) : 0;

	return isfinite(number) ? number : 0;
}

static void put_lost(FILE *out, const struct recording *r)
{
	bool is_first = true;

	fputs("\"lost\":[", out);
	for (size_t i = 0; i < recording_rows(r, RECORDING_META); i++) {
		uint64_t key = recording_get(r, RECORDING_META, i, META_KEY);

		if (strcmp(r->text.data[key], "lost") != 0)
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		put_text(out, r, recording_get(r, RECORDING_META, i, META_VALUE));
	}
	putc(']', out);
}

static void put_meta(FILE *out, const struct recording *r)
{
	static const char *const texts[] = {"command", "host", "kernel", "ptmem", "options",
					    "exit",    "name", "cgroup", "container",
					    "times"};

	fputs("\"meta\":{", out);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		put_meta_text(out, r, texts[i]);
	fprintf(out, "\"part\":%.0f,", meta_number(r, "part"));
	fprintf(out, "\"pid\":%.0f,\"start\":%.6f,\"start_monotonic\":%.9f,",
		meta_number(r, "pid"), meta_number(r, "start"),
		meta_number(r, "start_monotonic"));
	fprintf(out, "\"duration\":%.3f,\"heap_sample\":%.0f,", recording_duration(r),
		(double)r->interval);
	fprintf(out,
		"\"overhead\":%.1f,\"attached\":%s,\"incomplete\":%s,\"copy\":%s,\"corrupt\":%s,",
		meta_number(r, "overhead"), recording_meta(r, "attached") ? "true" : "false",
		r->is_complete ? "false" : "true", r->is_copy ? "true" : "false",
		recording_meta(r, "corrupt") ? "true" : "false");
	fprintf(out, "\"heap_sample_max\":%" PRIu64 ",\"temporary_below\":%" PRIu64 ",",
		recording_longest_interval(r), r->temporary_below);
	put_lost(out, r);
	fputs("},\n", out);
}

/* -- names -- */

static void put_objects(FILE *out, const struct recording *r)
{
	fputs("\"objects\":[", out);
	for (size_t i = 0; i < recording_rows(r, RECORDING_OBJECTS); i++) {
		fputs(i > 0 ? ",\n{\"path\":" : "{\"path\":", out);
		put_text(out, r, recording_get(r, RECORDING_OBJECTS, i, OBJECT_PATH));
		fputs(",\"build_id\":", out);
		recording_put_string(
			out,
			r->text.data[recording_get(r, RECORDING_OBJECTS, i, OBJECT_BUILD_ID)]);
		putc('}', out);
	}
	fputs("],\n", out);
}

/* What the page needs to find call sites itself: it has the user's patterns in its own controls. */
static void put_roles(FILE *out, const struct recording *r)
{
	size_t rows = recording_rows(r, RECORDING_FRAMES);

	fputs(",\n\"rank\":[", out);
	for (size_t i = 0; i < rows; i++)
		fprintf(out, "%s%d", i > 0 ? "," : "", recording_frame_role(r, i).rank);
	fputs("],\n\"role\":[", out);
	for (size_t i = 0; i < rows; i++) {
		const struct recording_role role = recording_frame_role(r, i);

		fprintf(out, "%s%u", i > 0 ? "," : "",
			(role.is_allocator ? ROLE_ALLOCATOR : 0u) |
				(role.is_fixed ? ROLE_FIXED : 0u) |
				(role.is_start ? ROLE_START : 0u));
	}
	putc(']', out);
}

static void put_my_code(FILE *out, const struct recording *r)
{
	fputs("\"my_code\":[", out);
	for (size_t i = 0; i < r->my_code.rule.count; i++) {
		if (i > 0)
			putc(',', out);
		recording_put_string(out, r->my_code.rule.data[i]);
	}
	fputs("],\n", out);
}

static void put_names(FILE *out, const struct recording *r)
{
	static const struct json_column frames[] = {
		{"function", FRAME_FUNCTION, put_text, ALWAYS},
		{"file", FRAME_FILE, put_text, ALWAYS},
		{"line", FRAME_LINE, recording_put_number, ALWAYS},
		{"object", FRAME_OBJECT, put_index, ALWAYS},
		{"kind", FRAME_KIND, recording_put_number, ALWAYS},
		{"inlined", FRAME_INLINED, recording_put_number, ALWAYS},
		{"address", FRAME_ADDRESS, put_address, ALWAYS},
		{0},
	};
	static const struct json_column nodes[] = {
		{"parent", NODE_PARENT, put_index, ALWAYS},
		{"frame", NODE_FRAME, recording_put_number, ALWAYS},
		{0},
	};

	put_my_code(out, r);
	put_objects(out, r);
	fputs("\"frames\":{", out);
	recording_put_columns(out, r, RECORDING_FRAMES, frames);
	put_roles(out, r);
	fputs("},\n\"nodes\":{", out);
	recording_put_columns(out, r, RECORDING_NODES, nodes);
	fputs("},\n", out);
}

/* -- leaves -- */

/* Rows are by leaf and bucket; empty buckets have no row. */
static size_t put_histogram(FILE *out, const struct recording *r, enum recording_table_id id,
			    uint64_t leaf, size_t at)
{
	uint64_t next = 0;

	putc('[', out);
	for (bool is_first = true; at < recording_rows(r, id) &&
				   recording_get(r, id, at, BUCKET_LEAF) == leaf;
	     at++, is_first = false) {
		uint64_t bucket = recording_get(r, id, at, BUCKET_NUMBER);

		if (is_first)
			fprintf(out, "%" PRIu64, next = bucket);
		for (; next < bucket; next++)
			fputs(",0", out);
		putc(',', out);
		recording_put_count(out, r, recording_get(r, id, at, BUCKET_COUNT));
		next++;
	}
	putc(']', out);
	return at;
}

static void put_histograms(FILE *out, const struct recording *r, const char *name,
			   enum recording_table_id id)
{
	size_t at = 0;

	fprintf(out, ",\n\"%s\":[", name);
	for (size_t leaf = 1; leaf <= recording_rows(r, RECORDING_LEAVES); leaf++) {
		if (leaf > 1)
			putc(',', out);
		at = put_histogram(out, r, id, leaf, at);
	}
	putc(']', out);
}

static size_t put_shares_of(FILE *out, const struct recording *r, uint64_t leaf, size_t at)
{
	const struct recording_table *t = &r->table[RECORDING_SHARES];

	putc('[', out);
	for (bool is_first = true; at < t->rows && t->column[SHARE_LEAF][at] == leaf;
	     at++, is_first = false) {
		fprintf(out, "%s[%" PRIu64 ",", is_first ? "" : ",", t->column[SHARE_THREAD][at]);
		recording_put_count(out, r, t->column[SHARE_BLOCKS][at]);
		fprintf(out, ",%" PRIu64, t->column[SHARE_BYTES][at]);
		if (r->interval) {
			putc(',', out);
			recording_put_variance(out, r, t->column[SHARE_VARIANCE][at]);
		}
		putc(']', out);
	}
	putc(']', out);
	return at;
}

/* Nodes + 1: those of their call sites. */
static void put_site(FILE *out, const struct recording *r, uint64_t node)
{
	fprintf(out, "%" PRId64, recording_site_of(r, node));
}

static void put_leaves(FILE *out, const struct recording *r)
{
	static const struct json_column leaves[] = {
		{"node", LEAF_NODE, put_index, ALWAYS},
		{"site", LEAF_NODE, put_site, ALWAYS},
		{"allocations", LEAF_ALLOCATIONS, recording_put_count, ALWAYS},
		{"bytes", LEAF_BYTES, recording_put_number, ALWAYS},
		{"temporary", LEAF_TEMPORARY, recording_put_count, OF_TEMPORARY},
		{"reallocs", LEAF_REALLOCS, recording_put_count, ALWAYS},
		{"moved", LEAF_MOVED, recording_put_count, ALWAYS},
		{"max_bytes", LEAF_MAX_BYTES, recording_put_number, ALWAYS},
		{"max_time", LEAF_MAX_TIME, recording_put_number, ALWAYS},
		{"variance", LEAF_VARIANCE, recording_put_variance, OF_SAMPLES},
		{"max_variance", LEAF_MAX_VARIANCE, recording_put_variance, OF_SAMPLES},
		{0},
	};
	size_t at = 0;

	fputs("\"leaves\":{", out);
	recording_put_columns(out, r, RECORDING_LEAVES, leaves);
	put_histograms(out, r, "sizes", RECORDING_SIZES);
	put_histograms(out, r, "lifetimes", RECORDING_LIFETIMES);
	fputs(",\n\"threads\":[", out);
	for (size_t leaf = 1; leaf <= recording_rows(r, RECORDING_LEAVES); leaf++) {
		if (leaf > 1)
			putc(',', out);
		at = put_shares_of(out, r, leaf, at);
	}
	fputs("]},\n", out);
}

/* -- time -- */

static void put_timeline(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"live_bytes", TIME_LIVE_BYTES, recording_put_number, ALWAYS},
		{"live_blocks", TIME_LIVE_BLOCKS, recording_put_count, ALWAYS},
		{"peak_bytes", TIME_PEAK_BYTES, recording_put_number, ALWAYS},
		{"rss", TIME_RSS, put_sample, ALWAYS},
		{"address_space", TIME_ADDRESS_SPACE, put_sample, ALWAYS},
		{"live_variance", TIME_LIVE_VARIANCE, recording_put_variance, OF_SAMPLES},
		{0},
	};
	static const struct json_column steps[] = {
		{"allocations", TIME_ALLOCATIONS, recording_put_count, ALWAYS},
		{"allocated_bytes", TIME_ALLOCATED_BYTES, recording_put_number, ALWAYS},
		{"releases", TIME_RELEASES, recording_put_count, ALWAYS},
		{"allocated_variance", TIME_ALLOCATED_VARIANCE, recording_put_variance, OF_SAMPLES},
	};

	fprintf(out, "\"timeline\":{\"interval\":%" PRIu64 ",\n\"time\":[",
		UINT64_C(1) << r->shift);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++)
		fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)i << r->shift);
	fputs("],\n", out);
	recording_put_columns(out, r, RECORDING_TIMELINE, columns);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i].when == ALWAYS || r->interval)
			recording_put_steps(out, r, &steps[i]);
	fputs("},\n", out);
}

static void put_cells(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", CELL_LEAF, put_index, ALWAYS},
		{"born", CELL_BORN, put_interval, ALWAYS},
		{"died", CELL_DIED, put_interval, ALWAYS},
		{"blocks", CELL_BLOCKS, recording_put_count, ALWAYS},
		{"bytes", CELL_BYTES, recording_put_number, ALWAYS},
		{"variance", CELL_VARIANCE, recording_put_variance, OF_SAMPLES},
		{0},
	};

	fputs("\"cells\":{", out);
	recording_put_columns(out, r, RECORDING_CELLS, columns);
	fputs("},\n", out);
}

static void put_peak(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", PEAK_LEAF, put_index, ALWAYS},
		{"bytes_of", PEAK_BYTES, recording_put_number, ALWAYS},
		{"blocks_of", PEAK_BLOCKS, recording_put_count, ALWAYS},
		{"variance_of", PEAK_VARIANCE, recording_put_variance, OF_SAMPLES},
		{0},
	};
	uint64_t at[PEAK_AT_COLUMNS] = {0};

	for (unsigned c = 0; recording_rows(r, RECORDING_PEAK_AT) && c < PEAK_AT_COLUMNS; c++)
		at[c] = recording_get(r, RECORDING_PEAK_AT, 0, c);
	fprintf(out, "\"peak\":{\"time\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"blocks\":",
		at[PEAK_AT_TIME], at[PEAK_AT_BYTES]);
	recording_put_count(out, r, at[PEAK_AT_BLOCKS]);
	if (r->interval) {
		fputs(",\"variance\":", out);
		recording_put_variance(out, r, at[PEAK_AT_VARIANCE]);
	}
	fputs(",\n", out);
	recording_put_columns(out, r, RECORDING_PEAK, columns);
	fputs("},\n", out);
}

/* -- the rest -- */

static void put_markers(FILE *out, const struct recording *r)
{
	fputs("\"markers\":[", out);
	for (size_t i = 0; i < recording_rows(r, RECORDING_MARKERS); i++) {
		fprintf(out, "%s{\"time\":%" PRIu64 ",\"kind\":", i > 0 ? "," : "",
			recording_get(r, RECORDING_MARKERS, i, MARKER_TIME));
		put_text(out, r, recording_get(r, RECORDING_MARKERS, i, MARKER_KIND));
		fputs(",\"text\":", out);
		recording_put_string(
			out, r->text.data[recording_get(r, RECORDING_MARKERS, i, MARKER_TEXT)]);
		putc('}', out);
	}
	fputs("],\n", out);
}

static void put_threads(FILE *out, const struct recording *r)
{
	fputs("\"threads\":[", out);
	for (size_t i = 0; i < recording_rows(r, RECORDING_THREADS); i++) {
		uint64_t id = recording_get(r, RECORDING_THREADS, i, THREAD_ID);
		char key[40];

		snprintf(key, sizeof(key), "thread.%" PRIu64, id);
		const char *name = recording_meta(r, key);

		fprintf(out, "%s{\"id\":%" PRIu64 ",\"name\":", i > 0 ? "," : "", id);
		recording_put_string(out, name ? name : "");
		putc('}', out);
	}
	fputs("],\n", out);
}

/* The table @id, or null if the recording does not have @meta. */
static void put_optional(FILE *out, const struct recording *r, const char *meta,
			 enum recording_table_id id, const struct json_column *columns)
{
	if (!recording_meta(r, meta)) {
		fputs("null,\n", out);
		return;
	}
	putc('{', out);
	recording_put_columns(out, r, id, columns);
	fputs("},\n", out);
}

static void put_leaks(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", LEAK_LEAF, put_index, ALWAYS},
		{"kind", LEAK_KIND, put_text, ALWAYS},
		{"blocks", LEAK_BLOCKS, recording_put_number, ALWAYS},
		{"bytes", LEAK_BYTES, recording_put_number, ALWAYS},
		{0},
	};

	fputs("\"leaks\":", out);
	put_optional(out, r, "leak_check", RECORDING_LEAKS, columns);
}

static void put_releases(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"node", RELEASE_NODE, put_index, ALWAYS},
		{"site", RELEASE_NODE, put_site, ALWAYS},
		{"blocks", RELEASE_BLOCKS, recording_put_count, ALWAYS},
		{"bytes", RELEASE_BYTES, recording_put_number, ALWAYS},
		{0},
	};

	fputs("\"releases\":", out);
	put_optional(out, r, "free_stacks", RECORDING_RELEASES, columns);
}

static void put_end(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"live_bytes", END_LIVE_BYTES, recording_put_number, ALWAYS},
		{"live_blocks", END_LIVE_BLOCKS, recording_put_count, ALWAYS},
		{"allocations", END_ALLOCATIONS, recording_put_count, ALWAYS},
		{"allocated_bytes", END_ALLOCATED_BYTES, recording_put_number, ALWAYS},
		{"reallocs", END_REALLOCS, recording_put_count, ALWAYS},
		{"frees", END_FREES, recording_put_count, ALWAYS},
		{"temporary", END_TEMPORARY, recording_put_count, OF_TEMPORARY},
		{"failed", END_FAILED, recording_put_number, ALWAYS},
		{"unknown_frees", END_UNKNOWN_FREES, recording_put_number, ALWAYS},
		{"stacks", END_STACKS, recording_put_number, ALWAYS},
		{"complete_stacks", END_COMPLETE_STACKS, recording_put_number, ALWAYS},
		{"live_variance", END_LIVE_VARIANCE, recording_put_variance, OF_SAMPLES},
		{"allocated_variance", END_ALLOCATED_VARIANCE, recording_put_variance, OF_SAMPLES},
	};
	size_t rows = recording_rows(r, RECORDING_END);

	fputs("\"end\":{", out);
	for (size_t c = 0; rows && c < ARRAY_SIZE(columns); c++) {
		if (columns[c].when == OF_SAMPLES && !r->interval)
			continue;
		fprintf(out, "%s\"%s\":", c > 0 ? "," : "", columns[c].name);
		if (columns[c].when == OF_TEMPORARY && !recording_knows_temporary(r))
			fputs("null", out);
		else
			columns[c].put(out, r, recording_get(r, RECORDING_END, rows - 1,
							     columns[c].column));
	}
	fputs("}", out);
}

/* Exact, even with samples. */
static void put_calls(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"function", CALL_FUNCTION, put_text, ALWAYS},
		{"calls", CALL_CALLS, recording_put_number, ALWAYS},
		{"bytes", CALL_BYTES, recording_put_number, ALWAYS},
		{0},
	};

	if (!r->interval)
		return;
	fputs(",\n\"calls\":{", out);
	recording_put_columns(out, r, RECORDING_CALLS, columns);
	putc('}', out);
}

void recording_json_write(FILE *out, const struct recording *r, const char *more)
{
	fputs("{\"format\":\"ptmem-report\",\"version\":1,\n", out);
	put_meta(out, r);
	put_names(out, r);
	put_leaves(out, r);
	put_timeline(out, r);
	put_cells(out, r);
	put_peak(out, r);
	put_markers(out, r);
	put_threads(out, r);
	put_leaks(out, r);
	put_releases(out, r);
	put_end(out, r);
	put_calls(out, r);
	fputs(",\n\"inspection\":", out);
	recording_inspection_write(out, r);
	fprintf(out, "%s}\n", more);
}
