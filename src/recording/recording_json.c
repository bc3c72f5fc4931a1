#include "recording/recording_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "malloc/account.h"
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

void recording_put_count(FILE *out, const struct recording *r, uint64_t value)
{
	if (r->interval && value % ESTIMATE_UNIT)
		fprintf(out, "%.4f", (double)value / (double)ESTIMATE_UNIT);
	else
		fprintf(out, "%" PRIu64, r->interval ? value / ESTIMATE_UNIT : value);
}

void recording_put_variance(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%.9g", recording_square_error(r, (double)value));
}

bool recording_knows_temporary(const struct recording *r)
{
	return !r->interval || r->temporary_below;
}

/* -- columns -- */

/* A text, or null if it is unknown. */
static void put_text(FILE *out, const struct recording *r, uint64_t value)
{
	recording_put_string(out, value ? r->text.data[value] : NULL);
}

static void put_value(FILE *out, const struct recording *r, const struct recording_column *c,
		      uint64_t value)
{
	switch (c->unit) {
	case UNIT_COUNT:
		recording_put_count(out, r, value);
		break;
	case UNIT_VARIANCE:
		recording_put_variance(out, r, value);
		break;
	case UNIT_TEXT:
		if (c->form == FORM_NOT_NULL)
			recording_put_string(out, r->text.data[value]);
		else
			put_text(out, r, value);
		break;
	case UNIT_ADDRESS:
		fprintf(out, "\"0x%" PRIx64 "\"", value);
		break;
	case UNIT_MICROSECONDS:
		fprintf(out, "%.3f", (double)value / 1e3);
		break;
	case UNIT_SAMPLE:
		if (value)
			fprintf(out, "%" PRIu64, value - 1);
		else
			fputs("null", out);
		break;
	case UNIT_INTERVAL:
		if (value == CELL_NEVER || value == CELL_BEFORE)
			value = UINT64_MAX; /* -1 */
		fprintf(out, "%" PRId64, (int64_t)value);
		break;
	case UNIT_OPTIONAL:
	case UNIT_LEAF: /* -1 = none */
		fprintf(out, "%" PRId64, (int64_t)value - 1);
		break;
	default:
		fprintf(out, "%" PRIu64, value);
	}
}

/* Whether the member of a column is null. */
static bool is_null(const struct recording *r, const struct recording_column *c)
{
	return c->form == FORM_TEMPORARY && !recording_knows_temporary(r);
}

/* Nodes + 1: those of their call sites. */
static void put_sites(FILE *out, const struct recording *r, enum recording_table_id id,
		      unsigned column)
{
	fputs(",\n\"site\":[", out);
	for (size_t i = 0; i < recording_rows(r, id); i++)
		fprintf(out, "%s%" PRId64, i > 0 ? "," : "",
			recording_site_of(r, recording_get(r, id, i, column)));
	putc(']', out);
}

/* Of names of inspect's rows. A row of a newer ptmem has its name instead. */
static void put_descriptions(FILE *out, const struct recording *r, enum recording_table_id id,
			     unsigned column)
{
	fputs(",\n\"text\":[", out);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		const char *name = r->text.data[recording_get(r, id, i, column)], *text = name;

		for (size_t row = 0; row < ROW_COUNT; row++)
			if (strcmp(name, inspect_row_name[row]) == 0)
				text = inspect_row_text[row];
		if (i > 0)
			putc(',', out);
		recording_put_string(out, text);
	}
	putc(']', out);
}

static void put_column(FILE *out, const struct recording *r, enum recording_table_id id,
		       unsigned column)
{
	const struct recording_column *c = &recording_table_info[id].column[column];
	uint64_t last = 0;

	fprintf(out, "\"%s\":", c->name);
	if (is_null(r, c)) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		uint64_t value = recording_get(r, id, i, column);

		if (i > 0)
			putc(',', out);
		put_value(out, r, c, value - last);
		if (c->form == FORM_STEPS)
			last = value;
	}
	putc(']', out);
	if (c->form == FORM_WITH_SITE)
		put_sites(out, r, id, column);
	else if (c->form == FORM_WITH_DESCRIPTION)
		put_descriptions(out, r, id, column);
}

/* `"name":[...]` for each column; those of steps are the last ones. */
static void put_columns(FILE *out, const struct recording *r, enum recording_table_id id)
{
	unsigned columns = recording_file_columns(id, r->interval);
	bool is_first = true;

	for (int steps = 0; steps < 2; steps++) {
		for (unsigned c = 0; c < columns; c++) {
			enum column_form form = recording_table_info[id].column[c].form;

			if (form == FORM_HIDDEN || steps != (form == FORM_STEPS))
				continue;
			if (!is_first)
				fputs(",\n", out);
			is_first = false;
			put_column(out, r, id, c);
		}
	}
}

/* The same as a member of the whole, an object. */
static void put_table(FILE *out, const struct recording *r, enum recording_table_id id)
{
	fprintf(out, "\"%s\":{", recording_table_info[id].json);
	put_columns(out, r, id);
	putc('}', out);
}

/* Row @i as `"name":value` for each column; all are 0 if there is no row. */
static void put_members(FILE *out, const struct recording *r, enum recording_table_id id, size_t i)
{
	bool is_first = true, is_there = recording_rows(r, id) > 0;

	for (unsigned c = 0; c < recording_file_columns(id, r->interval); c++) {
		const struct recording_column *column = &recording_table_info[id].column[c];

		if (column->form == FORM_HIDDEN)
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		if (column->form == FORM_WITH_PAGE)
			fprintf(out, "\"page\":%u,", PAGE_SIZE_MIN);
		fprintf(out, "\"%s\":", column->name);
		if (is_null(r, column))
			fputs("null", out);
		else
			put_value(out, r, column, is_there ? recording_get(r, id, i, c) : 0);
	}
}

/* The rows as a list of objects. */
static void put_list(FILE *out, const struct recording *r, enum recording_table_id id,
		     const char *separator)
{
	fprintf(out, "\"%s\":[", recording_table_info[id].json);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		fputs(i > 0 ? separator : "", out);
		putc('{', out);
		put_members(out, r, id, i);
		putc('}', out);
	}
	fputs("],\n", out);
}

void recording_inspection_write(FILE *out, const struct recording *r)
{
	if (!recording_rows(r, RECORDING_INSPECTION)) {
		fputs("null", out);
		return;
	}
	putc('{', out);
	put_members(out, r, RECORDING_INSPECTION, 0);
	for (int id = RECORDING_INSPECTED + 1; id < RECORDING_INSPECTED_END; id++) {
		fputs(",\n", out);
		put_table(out, r, (enum recording_table_id)id);
	}
	putc('}', out);
}

/* -- meta -- */

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
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fprintf(out, "\"%s\":", texts[i]);
		recording_put_string(out, recording_meta(r, texts[i]));
		putc(',', out);
	}
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
	put_my_code(out, r);
	put_list(out, r, RECORDING_OBJECTS, ",\n");
	fputs("\"frames\":{", out);
	put_columns(out, r, RECORDING_FRAMES);
	put_roles(out, r);
	fputs("},\n", out);
	put_table(out, r, RECORDING_NODES);
	fputs(",\n", out);
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

static void put_leaves(FILE *out, const struct recording *r)
{
	size_t at = 0;

	fputs("\"leaves\":{", out);
	put_columns(out, r, RECORDING_LEAVES);
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
	fprintf(out, "\"timeline\":{\"interval\":%" PRIu64 ",\n\"time\":[",
		UINT64_C(1) << r->shift);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++)
		fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)i << r->shift);
	fputs("],\n", out);
	put_columns(out, r, RECORDING_TIMELINE);
	fputs("},\n", out);
}

static void put_peak(FILE *out, const struct recording *r)
{
	fputs("\"peak\":{", out);
	put_members(out, r, RECORDING_PEAK_AT, 0);
	fputs(",\n", out);
	put_columns(out, r, RECORDING_PEAK);
	fputs("},\n", out);
}

/* -- the rest -- */

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
static void put_optional(FILE *out, const struct recording *r, enum recording_table_id id,
			 const char *meta)
{
	if (recording_meta(r, meta))
		put_table(out, r, id);
	else
		fprintf(out, "\"%s\":null", recording_table_info[id].json);
	fputs(",\n", out);
}

void recording_json_write(FILE *out, const struct recording *r, const char *more)
{
	fputs("{\"format\":\"ptmem-report\",\"version\":1,\n", out);
	put_meta(out, r);
	put_names(out, r);
	put_leaves(out, r);
	put_timeline(out, r);
	put_table(out, r, RECORDING_CELLS);
	fputs(",\n", out);
	put_peak(out, r);
	put_list(out, r, RECORDING_MARKERS, ",");
	put_threads(out, r);
	put_optional(out, r, RECORDING_LEAKS, "leak_check");
	put_optional(out, r, RECORDING_RELEASES, "free_stacks");
	fputs("\"end\":{", out);
	if (recording_rows(r, RECORDING_END))
		put_members(out, r, RECORDING_END, recording_rows(r, RECORDING_END) - 1);
	putc('}', out);
	if (r->interval) {
		fputs(",\n", out);
		put_table(out, r, RECORDING_CALLS);
	}
	fputs(",\n\"inspection\":", out);
	recording_inspection_write(out, r);
	fprintf(out, "%s}\n", more);
}
