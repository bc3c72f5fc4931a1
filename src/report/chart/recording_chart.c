/*
 * A recording as a chart: what each of the largest call sites had in use, over time, and resident
 * memory. All values are exact (of samples: the estimates of the recording), at the end of each
 * interval and at the peak, which is within one; lines connect them.
 */
#include "report/chart/input_picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/path_tree.h"
#include "profile/estimate.h"
#include "recording/recording_site.h"
#include "recording/recording_view.h"
#include "report/recording_paths.h"

#define SITES 7u    /* are shown, as of massif files */
#define RSS_MOST 4  /* resident memory is drawn if it is below so many times the heap */
#define MOMENTS 40u /* in time, and the peak: where the largest sites are looked for */

static const struct canvas_color other_color = {0.72, 0.72, 0.72};

struct site_chart {
	const struct recording *r;
	struct chart *chart;
	struct path_tree *names; /* below the root: a node for each call site */
	uint32_t *site;          /* by leaf: the node */
	uint64_t *bytes, *most;  /* by node: of a moment, and the most of those looked at */
	uint32_t shown[SITES];   /* nodes, the largest first */
	size_t count;            /* of those */
};

static uint32_t add_site(struct site_chart *b, size_t leaf)
{
	_cleanup_free_ char *label = recording_site_label(b->r, recording_site(b->r, leaf));

	return path_tree_child(b->names, 0, label, strlen(label));
}

static void find_sites(struct site_chart *b)
{
	size_t leaves = recording_rows(b->r, RECORDING_LEAVES);

	b->names = path_tree_new();
	b->site = xcalloc(leaves + 1, sizeof(*b->site));
	for (size_t i = 0; i < leaves; i++)
		b->site[i] = add_site(b, i);
	b->bytes = xcalloc(path_tree_node_count(b->names), sizeof(*b->bytes));
	b->most = xcalloc(path_tree_node_count(b->names), sizeof(*b->most));
}

/* Takes the bytes of each site from @v, and releases that. */
static void sum_sites(struct site_chart *b, struct recording_view *v)
{
	uint32_t nodes = path_tree_node_count(b->names);

	memset(b->bytes, 0, nodes * sizeof(*b->bytes));
	for (size_t i = 0; i < recording_rows(b->r, RECORDING_LEAVES); i++)
		b->bytes[b->site[i]] += v->leaf[i].bytes;
	for (uint32_t i = 1; i < nodes; i++)
		b->most[i] = MAX(b->most[i], b->bytes[i]);
	recording_view_deinit(v);
}

static bool has_peak(const struct site_chart *b)
{
	return recording_rows(b->r, RECORDING_PEAK_AT) > 0 &&
	       recording_get(b->r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES) > 0;
}

static void sum_peak(struct site_chart *b)
{
	struct recording_view v;

	recording_view_of(&v, b->r, VIEW_PEAK);
	sum_sites(b, &v);
}

static void sum_interval(struct site_chart *b, size_t i)
{
	struct recording_view v;

	recording_view_at(&v, b->r, (uint32_t)i);
	sum_sites(b, &v);
}

/* Inserts @node into the largest sites. */
static void rank(struct site_chart *b, uint32_t node)
{
	size_t at = b->count;

	while (at > 0 && b->most[b->shown[at - 1]] < b->most[node])
		at--;
	if (at == SITES || !b->most[node])
		return;
	b->count = MIN(b->count + 1, (size_t)SITES);
	for (size_t i = b->count - 1; i > at; i--)
		b->shown[i] = b->shown[i - 1];
	b->shown[at] = node;
}

static void find_largest(struct site_chart *b)
{
	size_t intervals = recording_rows(b->r, RECORDING_TIMELINE);
	size_t step = intervals / MOMENTS + 1;

	for (size_t i = step - 1; i < intervals; i += step)
		sum_interval(b, i);
	if (has_peak(b))
		sum_peak(b);
	for (uint32_t i = 1; i < path_tree_node_count(b->names); i++)
		rank(b, i);
}

/* Adds a column at @x, in milliseconds, from the sums of a moment. */
static void add_column(struct site_chart *b, double x)
{
	double low = 0, all = 0;

	for (uint32_t i = 1; i < path_tree_node_count(b->names); i++)
		all += (double)b->bytes[i];
	for (size_t i = 0; i < b->count; i++) {
		double high = low + (double)b->bytes[b->shown[i]];

		chart_add_point(&b->chart->series[i], x, low, high);
		low = high;
	}
	chart_add_point(&b->chart->series[b->count], x, low, all);
	chart_add_point(&b->chart->series[b->count + 1], x, 0, all);
	b->chart->y.max = MAX(b->chart->y.max, all);
}

/* Milliseconds until the end of interval @i; the last one ends with the profile. */
static double end_of(const struct recording *r, size_t i)
{
	bool is_last = i + 1 == recording_rows(r, RECORDING_TIMELINE);
	const char *duration = is_last ? recording_meta(r, "duration") : NULL;
	double start = (double)((uint64_t)i << r->shift);

	return duration ? MAX(start, strtod(duration, NULL)) :
			  start + (double)(UINT64_C(1) << r->shift);
}

static void add_columns(struct site_chart *b)
{
	size_t intervals = recording_rows(b->r, RECORDING_TIMELINE);
	bool wants_peak = has_peak(b);
	double peak = b->chart->peak_x;

	add_column(b, 0); /* of sums that are 0 */
	for (size_t i = 0; i < intervals; i++) {
		double end = end_of(b->r, i);

		if (wants_peak && (peak < end || i + 1 == intervals)) {
			sum_peak(b);
			add_column(b, peak);
			wants_peak = false;
			end = MAX(end, peak);
		}
		sum_interval(b, i);
		add_column(b, end);
		b->chart->x.max = MAX(b->chart->x.max, end);
	}
}

/* "71.2 KiB  79 %": the most that a series had at once, and its share of the highest total. */
static void set_value(struct chart_series *s, double all)
{
	char text[AXIS_TEXT_SIZE];
	double most = 0;

	for (size_t i = 0; i < s->count; i++)
		most = MAX(most, s->point[i].high - s->point[i].low);
	axis_text(AXIS_BYTES, most, text);
	s->value = all > 0 ? xasprintf("most %s  %.0f %%", text, most * 100 / all) : xstrdup(text);
}

/* In bytes; NAN = unknown. */
static double rss_of(const struct recording *r, size_t interval)
{
	uint64_t rss = recording_get(r, RECORDING_TIMELINE, interval, TIME_RSS);

	return rss ? (double)(rss - 1) : NAN;
}

/* Resident memory far above the heap would make that flat: the note has it then. */
static void add_rss(struct site_chart *b)
{
	struct chart *c = b->chart;
	size_t intervals = recording_rows(b->r, RECORDING_TIMELINE);
	double largest = 0;
	char text[AXIS_TEXT_SIZE];

	for (size_t i = 0; i < intervals; i++)
		largest = fmax(largest, rss_of(b->r, i));
	axis_text(AXIS_BYTES, largest, text);
	if (largest >= RSS_MOST * c->y.max) {
		char *note = xasprintf("%s%sResident memory was up to %s.", c->note ? c->note : "",
				       c->note ? " " : "", text);

		free(c->note);
		c->note = note;
		return;
	}
	if (largest <= 0)
		return;
	struct chart_series *s =
		chart_add(c, xstrdup("resident memory"), CHART_DASHES, CHART_VERMILLION);

	for (size_t i = 0; i < intervals; i++)
		if (!isnan(rss_of(b->r, i)))
			chart_add_point(s, end_of(b->r, i), 0, rss_of(b->r, i));
	s->value = xasprintf("most %s", text);
	c->y.max = MAX(c->y.max, largest);
}

static void set_texts(struct site_chart *b, const struct picture_options *o)
{
	struct chart *c = b->chart;
	const char *command = recording_meta(b->r, "command");
	_cleanup_free_ char *note = sampling_note(b->r->interval, b->r->interval);
	char bytes[AXIS_TEXT_SIZE], time[AXIS_TEXT_SIZE];

	c->title = o->title ? xstrdup(o->title) : text_clean(command ? command : "",
							     command ? strlen(command) : 0);
	c->x.kind = AXIS_MILLISECONDS;
	c->y.kind = AXIS_BYTES;
	c->x.max = c->y.max = 1;
	c->x_title = xstrdup("time");
	c->y_title = xstrdup("memory in use");
	c->note = *note ? xasprintf("Values%s.", note) : NULL;
	if (!has_peak(b))
		return;
	c->has_peak = true;
	c->peak_x = (double)recording_get(b->r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME);
	c->peak_y = (double)recording_get(b->r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES);
	axis_text(AXIS_BYTES, c->peak_y, bytes);
	axis_text(AXIS_MILLISECONDS, c->peak_x, time);
	c->peak_label = xasprintf("peak %s at %s", bytes, time);
}

/* A series for the call site "NAME (FILE:LINE)": the legend shortens the name alone. */
static void add_series(struct chart *c, const char *site, struct canvas_color color)
{
	size_t size = text_site_location(site);
	struct chart_series *s = chart_add(c, xstrndup(site, size), CHART_AREA, color);

	if (site[size])
		s->detail = xstrdup(site + size + 1);
}

/* Those of the sites, then the rest and the total, which is there for its line. */
static void draw_sites(struct site_chart *b)
{
	struct chart *c = b->chart;

	for (size_t i = 0; i < b->count; i++)
		add_series(c, path_tree_node(b->names, b->shown[i])->name, chart_palette(i));
	chart_add(c, xstrdup("other call sites"), CHART_AREA, other_color);
	chart_add(c, xstrdup("all"), CHART_LINE, CHART_BLACK);
	memset(b->bytes, 0, path_tree_node_count(b->names) * sizeof(*b->bytes));
	add_columns(b);
	for (size_t i = 0; i < c->series_count; i++)
		set_value(&c->series[i], c->y.max);
	if (path_tree_node_count(b->names) - 1 <= b->count) {
		free(c->series[b->count].value);
		free(c->series[b->count].label);
		free(c->series[b->count].detail);
		free(c->series[b->count].point);
		memmove(&c->series[b->count], &c->series[b->count + 1],
			(--c->series_count - b->count) * sizeof(*c->series));
	}
}

int recording_chart(const struct recording *r, const struct picture_options *o, struct chart *c,
		    char **why_out)
{
	struct site_chart b = {.r = r, .chart = c};

	if (!recording_rows(r, RECORDING_TIMELINE)) {
		*why_out = xstrdup("there is no time in it: nothing to draw");
		return -EINVAL;
	}
	set_texts(&b, o);
	find_sites(&b);
	find_largest(&b);
	draw_sites(&b);
	add_rss(&b);
	path_tree_free(b.names);
	free(b.site);
	free(b.bytes);
	free(b.most);
	return 0;
}
