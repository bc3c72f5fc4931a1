/* The tables of a recording as columns of JSON. */
#include "recording/recording_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "profile/cells.h"

void recording_json_string(FILE *out, const char *text)
{
	if (text)
		json_put_text(out, text, strlen(text));
	else
		fputs("null", out);
}

static const char *text_at(const struct recording *r, uint64_t index)
{
	return index ? r->text.data[index] : NULL;
}

typedef void put_value(FILE *out, const struct recording *r, uint64_t value);

static void put_number(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRIu64, value);
}

/* Of an index + 1: -1 = none. */
static void put_index(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRId64, (int64_t)value - 1);
}

static void put_died(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRId64, value == CELL_NEVER ? -1 : (int64_t)value);
}

static void put_text(FILE *out, const struct recording *r, uint64_t value)
{
	recording_json_string(out, text_at(r, value));
}

static void put_address(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "\"0x%" PRIx64 "\"", value);
}

/* Of bytes + 1: null = not known. */
static void put_sample(FILE *out, const struct recording *r, uint64_t value)
{
	if (value)
		fprintf(out, "%" PRIu64, value - 1);
	else
		fputs("null", out);
}

struct json_column {
	const char *name;
	uint8_t column;
	put_value *put;
};

static void put_column(FILE *out, const struct recording *r, enum recording_table_id id,
		       const struct json_column *c)
{
	fprintf(out, "\"%s\":[", c->name);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		if (i > 0)
			putc(',', out);
		c->put(out, r, recording_get(r, id, i, c->column));
	}
	putc(']', out);
}

static void put_columns(FILE *out, const struct recording *r, enum recording_table_id id,
			const struct json_column *c)
{
	for (size_t i = 0; c[i].name; i++) {
		if (i > 0)
			fputs(",\n", out);
		put_column(out, r, id, &c[i]);
	}
}

/* -- meta -- */

static void put_meta_text(FILE *out, const struct recording *r, const char *key)
{
	fprintf(out, "\"%s\":", key);
	recording_json_string(out, recording_meta(r, key));
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
		if (strcmp(text_at(r, recording_get(r, RECORDING_META, i, META_KEY)) ?: "", "lost"))
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		put_text(out, r, recording_get(r, RECORDING_META, i, META_VALUE));
	}
	putc(']', out);
}

static double duration(const struct recording *r)
{
	size_t n = recording_rows(r, RECORDING_TIMELINE);

	return r->is_complete ? meta_number(r, "duration") : (double)(n << r->shift);
}

static void put_meta(FILE *out, const struct recording *r)
{
	static const char *const texts[] = {"command", "host", "kernel", "ptmem", "options",
					    "exit"};

	fputs("\"meta\":{", out);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		put_meta_text(out, r, texts[i]);
	fprintf(out, "\"pid\":%.0f,\"start\":%.3f,\"duration\":%.3f,\"heap_sample\":%.0f,",
		meta_number(r, "pid"), meta_number(r, "start"), duration(r),
		meta_number(r, "heap_sample"));
	fprintf(out, "\"overhead\":%.1f,\"attached\":%s,\"incomplete\":%s,",
		meta_number(r, "overhead"), recording_meta(r, "attached") ? "true" : "false",
		r->is_complete ? "false" : "true");
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
		recording_json_string(
			out,
			r->text.data[recording_get(r, RECORDING_OBJECTS, i, OBJECT_BUILD_ID)]);
		putc('}', out);
	}
	fputs("],\n", out);
}

static void put_names(FILE *out, const struct recording *r)
{
	static const struct json_column frames[] = {
		{"function", FRAME_FUNCTION, put_text}, {"file", FRAME_FILE, put_text},
		{"line", FRAME_LINE, put_number},	{"object", FRAME_OBJECT, put_index},
		{"kind", FRAME_KIND, put_number},	{"inlined", FRAME_INLINED, put_number},
		{"address", FRAME_ADDRESS, put_address}, {0},
	};
	static const struct json_column nodes[] = {
		{"parent", NODE_PARENT, put_index}, {"frame", NODE_FRAME, put_number}, {0},
	};

	put_objects(out, r);
	fputs("\"frames\":{", out);
	put_columns(out, r, RECORDING_FRAMES, frames);
	fputs("},\n\"nodes\":{", out);
	put_columns(out, r, RECORDING_NODES, nodes);
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
		fprintf(out, ",%" PRIu64, recording_get(r, id, at, BUCKET_COUNT));
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
	     at++, is_first = false)
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", is_first ? "" : ",",
			t->column[SHARE_THREAD][at], t->column[SHARE_BLOCKS][at],
			t->column[SHARE_BYTES][at]);
	putc(']', out);
	return at;
}

static void put_leaves(FILE *out, const struct recording *r)
{
	static const struct json_column leaves[] = {
		{"node", LEAF_NODE, put_index},
		{"allocations", LEAF_ALLOCATIONS, put_number},
		{"bytes", LEAF_BYTES, put_number},
		{"temporary", LEAF_TEMPORARY, put_number},
		{"reallocs", LEAF_REALLOCS, put_number},
		{"moved", LEAF_MOVED, put_number},
		{"max_bytes", LEAF_MAX_BYTES, put_number},
		{"max_time", LEAF_MAX_TIME, put_number},
		{0},
	};
	size_t at = 0;

	fputs("\"leaves\":{", out);
	put_columns(out, r, RECORDING_LEAVES, leaves);
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

/* A sum from the beginning as what each interval added. */
static void put_steps(FILE *out, const struct recording *r, const char *name, unsigned column)
{
	uint64_t last = 0;

	fprintf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++) {
		uint64_t sum = recording_get(r, RECORDING_TIMELINE, i, column);

		fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", sum - last);
		last = sum;
	}
	putc(']', out);
}

static void put_timeline(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"live_bytes", TIME_LIVE_BYTES, put_number},
		{"live_blocks", TIME_LIVE_BLOCKS, put_number},
		{"peak_bytes", TIME_PEAK_BYTES, put_number},
		{"rss", TIME_RSS, put_sample},
		{"address_space", TIME_ADDRESS_SPACE, put_sample},
		{0},
	};

	fprintf(out, "\"timeline\":{\"interval\":%" PRIu64 ",\n\"time\":[",
		UINT64_C(1) << r->shift);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++)
		fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)i << r->shift);
	fputs("],\n", out);
	put_columns(out, r, RECORDING_TIMELINE, columns);
	put_steps(out, r, "allocations", TIME_ALLOCATIONS);
	put_steps(out, r, "allocated_bytes", TIME_ALLOCATED_BYTES);
	put_steps(out, r, "releases", TIME_RELEASES);
	fputs("},\n", out);
}

static void put_cells(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", CELL_LEAF, put_index},	    {"born", CELL_BORN, put_number},
		{"died", CELL_DIED, put_died},	    {"blocks", CELL_BLOCKS, put_number},
		{"bytes", CELL_BYTES, put_number}, {0},
	};

	fputs("\"cells\":{", out);
	put_columns(out, r, RECORDING_CELLS, columns);
	fputs("},\n", out);
}

static void put_peak(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", PEAK_LEAF, put_index}, {"bytes_of", PEAK_BYTES, put_number},
		{"blocks_of", PEAK_BLOCKS, put_number}, {0},
	};
	uint64_t at[PEAK_AT_COLUMNS] = {0};

	for (unsigned c = 0; recording_rows(r, RECORDING_PEAK_AT) && c < PEAK_AT_COLUMNS; c++)
		at[c] = recording_get(r, RECORDING_PEAK_AT, 0, c);
	fprintf(out,
		"\"peak\":{\"time\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\n",
		at[PEAK_AT_TIME], at[PEAK_AT_BYTES], at[PEAK_AT_BLOCKS]);
	put_columns(out, r, RECORDING_PEAK, columns);
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
		recording_json_string(
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
		recording_json_string(out, name ? name : "");
		putc('}', out);
	}
	fputs("],\n", out);
}

static void put_leaks(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"leaf", LEAK_LEAF, put_index},	      {"kind", LEAK_KIND, put_text},
		{"blocks", LEAK_BLOCKS, put_number}, {"bytes", LEAK_BYTES, put_number}, {0},
	};

	fputs("\"leaks\":", out);
	if (!recording_meta(r, "leak_check")) {
		fputs("null,\n", out);
		return;
	}
	putc('{', out);
	put_columns(out, r, RECORDING_LEAKS, columns);
	fputs("},\n", out);
}

static void put_releases(FILE *out, const struct recording *r)
{
	static const struct json_column columns[] = {
		{"node", RELEASE_NODE, put_index}, {"blocks", RELEASE_BLOCKS, put_number},
		{"bytes", RELEASE_BYTES, put_number}, {0},
	};

	fputs("\"releases\":", out);
	if (!recording_meta(r, "free_stacks")) {
		fputs("null,\n", out);
		return;
	}
	putc('{', out);
	put_columns(out, r, RECORDING_RELEASES, columns);
	fputs("},\n", out);
}

static void put_end(FILE *out, const struct recording *r)
{
	static const char *const names[END_COLUMNS] = {
		"live_bytes", "live_blocks", "allocations", "allocated_bytes", "reallocs", "frees",
		"temporary", "failed", "unknown_frees", "stacks", "complete_stacks",
	};
	size_t rows = recording_rows(r, RECORDING_END);

	fputs("\"end\":{", out);
	for (unsigned c = 0; rows && c < END_COLUMNS; c++)
		fprintf(out, "%s\"%s\":%" PRIu64, c > 0 ? "," : "", names[c],
			recording_get(r, RECORDING_END, rows - 1, c));
	fputs("}", out);
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
	fprintf(out, "%s}\n", more);
}
