/*
 * A massif file as a chart: the heap over time, stacked by its largest call sites, then the
 * allocator's overhead, then the stacks. The top is the total.
 *
 * Only snapshots with a tree have values of sites. In between, and after the last tree, these are
 * estimated (massif_sites.h). Before the first tree sites are unknown: the heap is a single
 * area there. The note under the chart explains this, and ticks mark the snapshots with a tree.
 */
#include "report/chart/input_picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "report/chart/massif_sites.h"
#include "report/massif_file.h"

static const struct canvas_color other_color = {0.72, 0.72, 0.72}, extra_color = {0.85, 0.85, 0.85},
				 stacks_color = {0.50, 0.50, 0.50}, heap_color = {0.34, 0.71, 0.91},
				 unknown_color = {0.80, 0.78, 0.70};

/* Where areas have points: at each snapshot, at the first one with a tree twice. */
struct column {
	size_t snapshot;       /* index */
	bool is_known;         /* this or an earlier snapshot has a tree */
	double low;            /* top of the areas stacked so far */
	double bytes[MASSIF_SITES_MAX + 1]; /* massif_interpolate() */
};

struct builder {
	const struct massif_file *file;
	struct chart *chart;
	struct massif_sites sites;
	size_t peak;           /* index of the marked snapshot */
	struct column *column;
	size_t column_count;
	double *x;             /* by snapshot */
};

/* The height of an area at @column; @which: index among areas of its kind. */
typedef double value_fn(const struct builder *b, const struct column *column, size_t which);

static bool has_trees(const struct builder *b)
{
	return b->sites.count > 0;
}

/*
 * The peak, whatever the file marks as such: the first of the largest snapshots, preferably with a
 * tree. The snapshot before the detailed peak often has the same total.
 */
static size_t find_peak(const struct massif_file *f)
{
	const struct massif_snapshot *s = f->snapshot;
	size_t peak = 0;

	for (size_t i = 1; i < f->snapshot_count; i++)
		if (s[i].total > s[peak].total ||
		    (s[i].total == s[peak].total && s[i].root && !s[peak].root))
			peak = i;
	return peak;
}

/*
 * Snapshots at the same time are spread over its unit, since the file has no fractions: all
 * snapshots of a program that runs for two milliseconds share few times.
 */
static void place_snapshots(struct builder *b)
{
	const struct massif_file *f = b->file;

	for (size_t first = 0, end; first < f->snapshot_count; first = end) {
		for (end = first + 1; end < f->snapshot_count; end++)
			if (f->snapshot[end].time != f->snapshot[first].time)
				break;
		for (size_t i = first; i < end; i++)
			b->x[i] = (double)f->snapshot[i].time +
				  (double)(i - first) / (double)(end - first);
	}
}

static double site_bytes(const struct builder *b, const struct column *column, size_t site)
{
	return column->is_known ? column->bytes[site] : 0;
}

/* "71.2 KiB  79 %"; for an area that is 0 at the peak its own maximum: "most 3 MiB at 1.2 s". */
static char *value_text(const struct builder *b, const struct chart_series *s, double at_peak)
{
	double total = (double)b->file->snapshot[b->peak].total;
	char text[AXIS_TEXT_SIZE], time[AXIS_TEXT_SIZE];
	size_t most = 0;

	for (size_t i = 1; i < s->count; i++)
		if (s->point[i].high - s->point[i].low > s->point[most].high - s->point[most].low)
			most = i;
	double bytes = s->point[most].high - s->point[most].low;

	if (at_peak < 0.5 && bytes >= 0.5) {
		axis_text(AXIS_BYTES, floor(bytes + 0.5), text);
		axis_text(b->chart->x.kind,
			  (double)b->file->snapshot[b->column[most].snapshot].time, time);
		return xasprintf("most %s at %s", text, time);
	}
	double percent = total > 0 ? at_peak * 100 / total : 0;

	axis_text(AXIS_BYTES, floor(at_peak + 0.5), text);
	if (at_peak >= 0.5 && percent < 0.5)
		return xasprintf("%s  <1 %%", text);
	return xasprintf("%s  %.0f %%", text, percent);
}

/*
 * Creates the columns. The first tree has an additional one for the values before it, so that call
 * sites start there with a vertical edge.
 */
static void make_columns(struct builder *b)
{
	size_t count = b->file->snapshot_count, first_tree = massif_nearest_tree(b->file, 0, 1);

	b->column = xcalloc(count + 1, sizeof(*b->column));
	for (size_t i = 0; i < count; i++) {
		if (i == first_tree && i > 0)
			b->column[b->column_count++].snapshot = i;
		struct column *c = &b->column[b->column_count++];
		*c = (struct column){.snapshot = i, .is_known = i >= first_tree};
		massif_interpolate(b->file, &b->sites, b->x, i, c->bytes);
	}
}

static double value_at_peak(const struct builder *b, value_fn *value, size_t which)
{
	size_t i = b->column_count - 1;

	while (b->column[i].snapshot != b->peak)
		i--;
	return value(b, &b->column[i], which);
}

/* Stacks an area on the previous ones. */
static struct chart_series *stack_area(struct builder *b, char *label, struct canvas_color color,
				       value_fn *value, size_t which)
{
	struct chart_series *s = chart_add(b->chart, label, CHART_AREA, color);
	double at_peak = value_at_peak(b, value, which);

	for (size_t i = 0; i < b->column_count; i++) {
		struct column *c = &b->column[i];
		double high = c->low + value(b, c, which);

		chart_add_point(s, b->x[c->snapshot], c->low, high);
		c->low = high;
	}
	s->value = value_text(b, s, at_peak);
	return s;
}

static void stack_site(struct builder *b, size_t site)
{
	const char *location = b->sites.location[site];
	struct chart_series *s = stack_area(b, xstrdup(b->sites.function[site]),
					    chart_palette(site), site_bytes, site);

	s->detail = location ? xstrdup(location) : NULL;
}

static double heap_bytes(const struct builder *b, const struct column *c)
{
	return (double)b->file->snapshot[c->snapshot].heap;
}

/* The heap before the first tree. */
static double unknown_bytes(const struct builder *b, const struct column *c, size_t which)
{
	return has_trees(b) && !c->is_known ? heap_bytes(b, c) : 0;
}

/* The rest of the heap above the sites. */
static double other_bytes(const struct builder *b, const struct column *c, size_t which)
{
	return MAX(0.0, heap_bytes(b, c) - c->low);
}

static bool has_any(const struct builder *b, value_fn *value)
{
	for (size_t i = 0; i < b->column_count; i++)
		if (value(b, &b->column[i], 0) >= 0.5)
			return true;
	return false;
}

static double extra_bytes(const struct builder *b, const struct column *c, size_t which)
{
	return (double)b->file->snapshot[c->snapshot].extra;
}

static double stacks_bytes(const struct builder *b, const struct column *c, size_t which)
{
	return (double)b->file->snapshot[c->snapshot].stacks;
}

/* The curve of the total, on top of the areas; it has no entry in the legend. */
static void stack_areas(struct builder *b)
{
	const struct massif_file *f = b->file;
	bool has_heap = false, has_extra = false, has_stacks = false;

	for (size_t i = 0; i < f->snapshot_count; i++) {
		has_heap |= f->snapshot[i].heap > 0;
		has_extra |= f->snapshot[i].extra > 0;
		has_stacks |= f->snapshot[i].stacks > 0;
	}
	for (size_t i = 0; i < b->sites.count; i++)
		stack_site(b, i);
	if (has_any(b, unknown_bytes))
		stack_area(b, xstrdup("call sites not known yet"), unknown_color, unknown_bytes, 0);
	if (has_heap && has_trees(b) && has_any(b, other_bytes))
		stack_area(b, xstrdup("other call sites"), other_color, other_bytes, 0);
	else if (has_heap && !has_trees(b))
		stack_area(b, xstrdup("useful heap"), heap_color, other_bytes, 0);
	if (has_extra)
		stack_area(b, xstrdup("allocator overhead (estimate)"), extra_color,
			   extra_bytes, 0);
	if (has_stacks)
		stack_area(b, xstrdup("stacks"), stacks_color, stacks_bytes, 0);
}

/* The number of touched pages only grows. */
static bool only_grows(const struct massif_file *f)
{
	return f->memory == MEMORY_FAULTS;
}

static const char *y_title(const struct massif_file *f)
{
	static const char *const titles[MEMORY_KINDS] = {
		[MEMORY_HEAP] = "memory in use",
		[MEMORY_PAGES] = "memory mapped",
		[MEMORY_BRK] = "memory below the program break",
		[MEMORY_MAPPED] = "memory mapped",
		[MEMORY_FAULTS] = "bytes touched",
	};

	return titles[f->memory];
}

static void mark_peak(struct builder *b)
{
	const struct massif_snapshot *s = &b->file->snapshot[b->peak];
	char bytes[AXIS_TEXT_SIZE], time[AXIS_TEXT_SIZE];

	axis_text(AXIS_BYTES, (double)s->total, bytes);
	axis_text(b->chart->x.kind, (double)s->time, time);
	b->chart->has_peak = true;
	b->chart->peak_x = b->x[b->peak];
	b->chart->peak_y = (double)s->total;
	b->chart->peak_label = xasprintf(
		only_grows(b->file) ? "%s touched by %s" : "peak %s at %s", bytes, time);
}

static int set_x_axis(const struct builder *b, char **why_out)
{
	const struct massif_file *f = b->file;
	struct chart *c = b->chart;
	const char *title;

	if (massif_text_is(f->time_unit, "ms")) {
		c->x.kind = AXIS_MILLISECONDS;
		title = "time";
	} else if (massif_text_is(f->time_unit, "B")) {
		c->x.kind = AXIS_BYTES;
		title = "bytes allocated and freed so far";
	} else if (massif_text_is(f->time_unit, "i")) {
		c->x.kind = AXIS_INSTRUCTIONS;
		title = "instructions executed (i)";
	} else {
		*why_out = xasprintf("unknown time unit '%.*s'", MASSIF_TEXT(f->time_unit));
		return -EINVAL;
	}
	c->x_title = xstrdup(title);
	for (size_t i = 0; i < f->snapshot_count; i++)
		c->x.max = MAX(c->x.max, b->x[i]);
	c->x.max = MAX(c->x.max, 1);
	return 0;
}

/* One process may have lived longer: the axis covers both curves. */
static void add_rss(const struct samples_file *rss, uint32_t pid, struct chart *c)
{
	double largest = samples_chart_add_rss(rss, pid, c);

	c->y.max = MAX(c->y.max, largest);
	for (size_t i = 0; i < rss->row_count; i++)
		if (rss->pid[i] == pid)
			c->x.max = MAX(c->x.max, rss->time[i] * 1000);
}

static char *make_note(const struct builder *b)
{
	const char *when = only_grows(b->file) ? "end" : "peak";
	uint64_t interval = massif_sampling_interval(b->file);
	_cleanup_free_ char *note = sampling_note(interval, interval);

	if (!has_trees(b))
		return xasprintf("Values are those at the %s%s.", when, note);
	return xasprintf("Values are those at the %s%s. Ticks at the foot: snapshots that know "
			 "call sites; between them, interpolated.", when, note);
}

static void fill_chart(struct builder *b, const struct picture_options *o)
{
	struct chart *c = b->chart;

	b->peak = find_peak(b->file);
	massif_sites_find(b->file, &b->sites);
	make_columns(b);
	stack_areas(b);
	c->title = o->title ? xstrdup(o->title) :
			      text_clean(b->file->command.at, b->file->command.size);
	c->y = (struct axis){AXIS_BYTES, MAX((double)b->file->largest_total, 1)};
	c->y_title = xstrdup(y_title(b->file));
	c->note = make_note(b);
	if (o->rss)
		add_rss(o->rss, o->rss_pid, c);
	for (size_t i = 0; has_trees(b) && i < b->file->snapshot_count; i++)
		if (b->file->snapshot[i].root && b->file->snapshot[i].heap)
			chart_add_mark(b->chart, b->x[i]);
	mark_peak(b);
	massif_sites_deinit(&b->sites);
	free(b->column);
}

int massif_chart(const struct massif_file *f, const struct picture_options *o, struct chart *c,
		 char **why_out)
{
	struct builder b = {.file = f, .chart = c};

	if (!f->snapshot_count) {
		*why_out = xstrdup("there is no snapshot in it: nothing to draw");
		return -EINVAL;
	}
	b.x = xcalloc(f->snapshot_count, sizeof(*b.x));
	place_snapshots(&b);
	int err = set_x_axis(&b, why_out);

	if (!err && o->rss && c->x.kind != AXIS_MILLISECONDS) {
		*why_out = xstrdup("--rss needs a profile over time (--time-unit=ms)");
		err = -EINVAL;
	}
	if (!err)
		fill_chart(&b, o);
	free(b.x);
	return err;
}
