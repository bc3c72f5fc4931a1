#include "recording/recording_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_write.h"
#include "malloc/account.h"
#include "output/graph/graph_page.h"
#include "profile/cells.h"
#include "profile/estimate.h"
#include "recording/graph_file.h"
#include "recording/recording_site.h"
#include "recording/recording_view.h"

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

static void put_value(struct json_writer *w, const char *name, const struct recording *r,
		      const struct recording_column *c, uint64_t value)
{
	switch (c->unit) {
	case UNIT_COUNT:
		json_write_name(w, name);
		recording_put_count(w->out, r, value);
		break;
	case UNIT_VARIANCE:
		json_write_name(w, name);
		recording_put_variance(w->out, r, value);
		break;
	case UNIT_TEXT:
		json_write_text(w, name, c->form == FORM_NOT_NULL ? r->text.data[value] :
								     recording_text_at(r, value));
		break;
	case UNIT_ADDRESS:
		json_write_format(w, name, "\"0x%" PRIx64 "\"", value);
		break;
	case UNIT_MICROSECONDS:
		json_write_format(w, name, "%.3f", (double)value / 1e3);
		break;
	case UNIT_SAMPLE:
		if (value)
			json_write_number(w, name, value - 1);
		else
			json_write_text(w, name, NULL);
		break;
	case UNIT_INTERVAL:
		if (value == CELL_NEVER || value == CELL_BEFORE)
			value = UINT64_MAX; /* -1 */
		json_write_format(w, name, "%" PRId64, (int64_t)value);
		break;
	case UNIT_OPTIONAL:
	case UNIT_LEAF: /* -1 = none */
		json_write_format(w, name, "%" PRId64, (int64_t)value - 1);
		break;
	default:
		json_write_number(w, name, value);
	}
}

/* Whether the member of a column is null. */
static bool is_null(const struct recording *r, const struct recording_column *c)
{
	return c->form == FORM_TEMPORARY && !recording_knows_temporary(r);
}

/* Nodes + 1: those of their call sites. */
static void put_sites(struct json_writer *w, const struct recording *r, enum recording_table_id id,
		      unsigned column)
{
	json_write_open(json_write_line(w, 0), "site", '[');
	for (size_t i = 0; i < recording_rows(r, id); i++)
		json_write_format(w, NULL, "%" PRId64,
				  recording_site_of(r, recording_get(r, id, i, column)));
	json_write_close(w, 1);
}

/* Of names of inspect's rows. A row of a newer ptmem has its name instead. */
static void put_descriptions(struct json_writer *w, const struct recording *r,
			     enum recording_table_id id, unsigned column)
{
	json_write_open(json_write_line(w, 0), "text", '[');
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		const char *name = r->text.data[recording_get(r, id, i, column)], *text = name;

		for (size_t row = 0; row < ROW_COUNT; row++)
			if (strcmp(name, inspect_row_name[row]) == 0)
				text = inspect_row_text[row];
		json_write_text(w, NULL, text);
	}
	json_write_close(w, 1);
}

void recording_json_column(struct json_writer *w, const struct recording *r,
			   enum recording_table_id id, unsigned column)
{
	const struct recording_column *c = &recording_table_info[id].column[column];
	uint64_t last = 0;

	if (is_null(r, c)) {
		json_write_text(w, c->name, NULL);
		return;
	}
	json_write_open(w, c->name, '[');
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		uint64_t value = recording_get(r, id, i, column);

		put_value(w, NULL, r, c, value - last);
		if (c->form == FORM_STEPS)
			last = value;
	}
	json_write_close(w, 1);
	if (c->form == FORM_WITH_SITE)
		put_sites(w, r, id, column);
	else if (c->form == FORM_WITH_DESCRIPTION)
		put_descriptions(w, r, id, column);
}

/* `"name":[...]` for each column; those of steps are the last ones. */
static void put_columns(struct json_writer *w, const struct recording *r,
			enum recording_table_id id)
{
	unsigned columns = recording_file_columns(id, r->interval);
	bool is_first = true;

	for (int steps = 0; steps < 2; steps++) {
		for (unsigned c = 0; c < columns; c++) {
			enum column_form form = recording_table_info[id].column[c].form;

			if (form == FORM_HIDDEN || steps != (form == FORM_STEPS))
				continue;
			if (!is_first)
				json_write_line(w, 0);
			is_first = false;
			recording_json_column(w, r, id, c);
		}
	}
}

/* The same as a member of the whole: an object, on a line of its own. */
void recording_json_table(struct json_writer *w, const struct recording *r,
			  enum recording_table_id id)
{
	json_write_open(json_write_line(w, 0), recording_table_info[id].json, '{');
	put_columns(w, r, id);
	json_write_close(w, 1);
}

/* Row @i as `"name":value` for each column; all are 0 if there is no row. */
static void put_members(struct json_writer *w, const struct recording *r,
			enum recording_table_id id, size_t i)
{
	bool is_there = recording_rows(r, id) > 0;

	for (unsigned c = 0; c < recording_file_columns(id, r->interval); c++) {
		const struct recording_column *column = &recording_table_info[id].column[c];

		if (column->form == FORM_HIDDEN)
			continue;
		if (column->form == FORM_WITH_PAGE)
			json_write_number(w, "page", PAGE_SIZE_MIN);
		if (is_null(r, column))
			json_write_text(w, column->name, NULL);
		else
			put_value(w, column->name, r, column,
				  is_there ? recording_get(r, id, i, c) : 0);
	}
}

/* The rows as a list of objects; @has_lines: each one but the first begins a line. */
void recording_json_list(struct json_writer *w, const struct recording *r,
			 enum recording_table_id id, bool has_lines)
{
	json_write_open(json_write_line(w, 0), recording_table_info[id].json, '[');
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		if (has_lines && i > 0)
			json_write_line(w, 0);
		json_write_open(w, NULL, '{');
		put_members(w, r, id, i);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void put_inspection(struct json_writer *w, const char *name, const struct recording *r)
{
	if (!recording_rows(r, RECORDING_INSPECTION)) {
		json_write_text(w, name, NULL);
		return;
	}
	json_write_open(w, name, '{');
	put_members(w, r, RECORDING_INSPECTION, 0);
	for (int id = RECORDING_INSPECTED + 1; id < RECORDING_INSPECTED_END; id++)
		recording_json_table(w, r, (enum recording_table_id)id);
	json_write_close(w, 1);
}

void recording_inspection_write(FILE *out, const struct recording *r)
{
	put_inspection(&(struct json_writer){.out = out}, NULL, r);
}

/* -- meta -- */

static double meta_number(const struct recording *r, const char *key)
{
	const char *value = recording_meta(r, key);

	double number = value ? strtod(value, NULL) : 0;

	return isfinite(number) ? number : 0;
}

/* The values of a key that may have several. */
static void put_meta_list(struct json_writer *w, const struct recording *r, const char *wanted)
{
	json_write_open(w, wanted, '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_META); i++) {
		uint64_t key = recording_get(r, RECORDING_META, i, META_KEY);
		uint64_t value = recording_get(r, RECORDING_META, i, META_VALUE);

		if (strcmp(r->text.data[key], wanted) == 0)
			json_write_text(w, NULL, recording_text_at(r, value));
	}
	json_write_close(w, 1);
}

void recording_json_meta(struct json_writer *w, const struct recording *r)
{
	static const char *const texts[] = {"command", "host", "kernel", "ptmem", "options",
					    "exit",    "name", "cgroup", "container",
					    "times"};

	json_write_open(json_write_line(w, 0), "meta", '{');
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		json_write_text(w, texts[i], recording_meta(r, texts[i]));
	json_write_format(w, "part", "%.0f", meta_number(r, "part"));
	json_write_format(w, "pid", "%.0f", meta_number(r, "pid"));
	json_write_format(w, "start", "%.6f", meta_number(r, "start"));
	json_write_format(w, "start_monotonic", "%.9f", meta_number(r, "start_monotonic"));
	json_write_format(w, "duration", "%.3f", recording_duration(r));
	json_write_format(w, "heap_sample", "%.0f", (double)r->interval);
	json_write_format(w, "overhead", "%.1f", meta_number(r, "overhead"));
	json_write_bool(w, "attached", recording_meta(r, "attached"));
	json_write_bool(w, "incomplete", !r->is_complete);
	json_write_bool(w, "copy", r->is_copy);
	json_write_bool(w, "corrupt", recording_meta(r, "corrupt"));
	json_write_numbers(w, {"heap_sample_max", recording_longest_interval(r)},
			   {"temporary_below", r->temporary_below});
	put_meta_list(w, r, "lost");
	if (recording_meta(r, WITHIN_META))
		put_meta_list(w, r, WITHIN_META);
	json_write_close(w, 1);
}

/* -- names -- */

/* What the page needs to find call sites itself: it has the user's patterns in its own controls. */
static void put_roles(struct json_writer *w, const struct recording *r)
{
	size_t rows = recording_rows(r, RECORDING_FRAMES);

	json_write_open(json_write_line(w, 0), "rank", '[');
	for (size_t i = 0; i < rows; i++)
		json_write_number(w, NULL, recording_frame_role(r, i).rank);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "role", '[');
	for (size_t i = 0; i < rows; i++) {
		const struct recording_role role = recording_frame_role(r, i);

		json_write_number(w, NULL, recording_role_bits(&role));
	}
	json_write_close(w, 1);
}

void recording_json_rules(struct json_writer *w, const struct recording *r)
{
	json_write_open(json_write_line(w, 0), "my_code", '[');
	for (size_t i = 0; i < r->my_code.rule.count; i++)
		json_write_text(w, NULL, r->my_code.rule.data[i]);
	json_write_close(w, 1);
}

static void put_names(struct json_writer *w, const struct recording *r)
{
	recording_json_rules(w, r);
	recording_json_list(w, r, RECORDING_OBJECTS, true);
	json_write_open(json_write_line(w, 0), "frames", '{');
	put_columns(w, r, RECORDING_FRAMES);
	put_roles(w, r);
	json_write_close(w, 1);
	recording_json_table(w, r, RECORDING_NODES);
}

/* -- leaves -- */

/* Rows are by leaf and bucket; empty buckets have no row. */
static void put_histograms(struct json_writer *w, const struct recording *r, const char *name,
			   enum recording_table_id id)
{
	size_t at = 0;

	json_write_open(json_write_line(w, 0), name, '[');
	for (size_t leaf = 1; leaf <= recording_rows(r, RECORDING_LEAVES); leaf++) {
		uint64_t next = 0;

		json_write_open(w, NULL, '[');
		for (bool is_first = true; at < recording_rows(r, id) &&
					   recording_get(r, id, at, BUCKET_LEAF) == leaf;
		     at++, is_first = false) {
			uint64_t bucket = recording_get(r, id, at, BUCKET_NUMBER);

			if (is_first)
				json_write_number(w, NULL, next = bucket);
			for (; next < bucket; next++)
				json_write_number(w, NULL, 0);
			json_write_name(w, NULL);
			recording_put_count(w->out, r, recording_get(r, id, at, BUCKET_COUNT));
			next++;
		}
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

/* null: not known. */
static void put_lived(struct json_writer *w, const struct recording *r)
{
	_cleanup_free_ double *lived = recording_lived(r);

	json_write_open(json_write_line(w, 0), "lived", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (isnan(lived[i]))
			json_write_format(w, NULL, "null");
		else
			json_write_format(w, NULL, "%.*f", r->interval ? 4 : 0, lived[i]);
	json_write_close(w, 1);
}

static size_t put_shares_of(struct json_writer *w, const struct recording *r, uint64_t leaf,
			    size_t at)
{
	const struct recording_table *t = &r->table[RECORDING_SHARES];

	json_write_open(w, NULL, '[');
	for (; at < t->rows && t->column[SHARE_LEAF][at] == leaf; at++) {
		json_write_open(w, NULL, '[');
		json_write_number(w, NULL, t->column[SHARE_THREAD][at]);
		json_write_name(w, NULL);
		recording_put_count(w->out, r, t->column[SHARE_BLOCKS][at]);
		json_write_number(w, NULL, t->column[SHARE_BYTES][at]);
		if (r->interval) {
			json_write_name(w, NULL);
			recording_put_variance(w->out, r, t->column[SHARE_VARIANCE][at]);
		}
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	return at;
}

static void put_leaves(struct json_writer *w, const struct recording *r)
{
	size_t at = 0;

	json_write_open(json_write_line(w, 0), "leaves", '{');
	put_columns(w, r, RECORDING_LEAVES);
	put_histograms(w, r, "sizes", RECORDING_SIZES);
	put_histograms(w, r, "lifetimes", RECORDING_LIFETIMES);
	put_lived(w, r);
	json_write_open(json_write_line(w, 0), "threads", '[');
	for (size_t leaf = 1; leaf <= recording_rows(r, RECORDING_LEAVES); leaf++)
		at = put_shares_of(w, r, leaf, at);
	json_write_close(w, 2);
}

/* -- the rest -- */

static void put_timeline(struct json_writer *w, const struct recording *r,
			 const uint64_t *interval_end)
{
	json_write_open(json_write_line(w, 0), "timeline", '{');
	json_write_number(w, "interval", interval_end ? 0 : UINT64_C(1) << r->shift);
	json_write_open(json_write_line(w, 0), "time", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++)
		json_write_number(w, NULL,
				  interval_end ? interval_end[i] : (uint64_t)i << r->shift);
	json_write_close(w, 1);
	put_columns(json_write_line(w, 0), r, RECORDING_TIMELINE);
	json_write_close(w, 1);
}

static void put_threads(struct json_writer *w, const struct recording *r)
{
	json_write_open(json_write_line(w, 0), "threads", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_THREADS); i++) {
		uint64_t id = recording_get(r, RECORDING_THREADS, i, THREAD_ID);
		char key[40];

		snprintf(key, sizeof(key), "thread.%" PRIu64, id);
		const char *name = recording_meta(r, key);

		json_write_open(w, NULL, '{');
		json_write_number(w, "id", id);
		json_write_text(w, "name", name ? name : "");
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

/* The table @id, or null if the recording does not have @meta. */
static void put_optional(struct json_writer *w, const struct recording *r,
			 enum recording_table_id id, const char *meta)
{
	if (recording_meta(r, meta))
		recording_json_table(w, r, id);
	else
		json_write_text(json_write_line(w, 0), recording_table_info[id].json, NULL);
}

static void put_if_any(struct json_writer *w, const struct recording *r, enum recording_table_id id)
{
	if (recording_rows(r, id))
		recording_json_table(w, r, id);
}

/* If @r has a graph that is not damaged: readers of files have said so before. */
static void put_graph(struct json_writer *w, const struct recording *r)
{
	_cleanup_free_ char *why = NULL;
	struct graph_file *f;

	if (!graph_file_is_in(r) || graph_file_take(r, &f, &why) != 0)
		return;
	const struct graph_title title = graph_file_title(f);

	graph_page_write_json(json_write_line(w, 0), "graph", &title, &f->graph);
	graph_file_free(f);
}

void recording_json_members(struct json_writer *w, const struct recording *r,
			    const uint64_t *interval_end)
{
	put_leaves(w, r);
	put_timeline(w, r, interval_end);
	recording_json_table(w, r, RECORDING_CELLS);
	json_write_open(json_write_line(w, 0), "peak", '{');
	put_members(w, r, RECORDING_PEAK_AT, 0);
	put_columns(json_write_line(w, 0), r, RECORDING_PEAK);
	json_write_close(w, 1);
	recording_json_list(w, r, RECORDING_MARKERS, false);
	put_threads(w, r);
	put_optional(w, r, RECORDING_LEAKS, "leak_check");
	put_if_any(w, r, RECORDING_LEAK_AGES);
	put_if_any(w, r, RECORDING_LEAK_HOLDERS);
	put_optional(w, r, RECORDING_RELEASES, "free_stacks");
	json_write_open(json_write_line(w, 0), "end", '{');
	if (recording_rows(r, RECORDING_END))
		put_members(w, r, RECORDING_END, recording_rows(r, RECORDING_END) - 1);
	json_write_close(w, 1);
	if (r->interval)
		recording_json_table(w, r, RECORDING_CALLS);
	put_inspection(json_write_line(w, 0), "inspection", r);
	put_graph(w, r);
}

void recording_json_write(FILE *out, const struct recording *r, const char *more)
{
	struct json_writer w = {.out = out};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-report");
	json_write_number(&w, "version", 1);
	recording_json_meta(&w, r);
	put_names(&w, r);
	recording_json_members(&w, r, NULL);
	fputs(more, out);
	json_write_close(&w, 1);
	putc('\n', out);
}
