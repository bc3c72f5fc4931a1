/*
 * A massif file as a chart: the heap over time, stacked up from its largest call sites,
 * then what the allocator adds, then the stacks. The top of the stack is the total.
 *
 * Only snapshots with a tree say which site holds what. In between, sites are
 * interpolated such that they add up to the heap; before the first and after the last tree
 * they share it as in that tree. The chart says so, and marks the snapshots that know.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "report/charts.h"
#include "report/massif_sites.h"

static const struct chart_color other_color = {0.72, 0.72, 0.72}, extra_color = {0.85, 0.85, 0.85},
				 stacks_color = {0.50, 0.50, 0.50}, heap_color = {0.34, 0.71, 0.91};

struct builder {
	const struct massif_file *file;
	struct chart *chart;
	struct massif_sites sites;
	size_t peak;           /* index of the snapshot that is marked */
	double *low;           /* by snapshot: the top of what is stacked so far */
};

static bool has_trees(const struct builder *b)
{
	return b->sites.count > 0;
}

/* Which snapshot is the peak, whatever its mark says: the first of the largest. */
static size_t find_peak(const struct massif_file *f)
{
	size_t peak = 0;

	for (size_t i = 1; i < f->snapshot_count; i++)
		if (f->snapshot[i].total > f->snapshot[peak].total)
			peak = i;
	return peak;
}

/* The share of the heap that site @site has in snapshot @s, which has a tree. */
static double known_share(const struct builder *b, size_t s, size_t site)
{
	uint64_t heap = b->file->snapshot[s].heap;

	return heap ? MIN(1.0, (double)b->sites.bytes[s * MASSIF_SITES_MAX + site] / (double)heap) :
		      0;
}

/* The nearest snapshot from @s on, in steps of @step, whose tree shows sites; SIZE_MAX = none. */
static size_t nearest_tree(const struct massif_file *f, size_t s, int step)
{
	for (; s < f->snapshot_count; s += (size_t)step)
		if (f->snapshot[s].root && f->snapshot[s].heap)
			return s;
	return SIZE_MAX;
}

/*
 * How far snapshot @s is from @before to @after, 0 .. 1. Where the heap changes much, sites change
 * with it; else with time.
 */
static double progress(const struct massif_file *f, size_t before, size_t s, size_t after)
{
	double h0 = (double)f->snapshot[before].heap, h1 = (double)f->snapshot[after].heap;
	double h = (double)f->snapshot[s].heap;
	double t0 = (double)f->snapshot[before].time, t1 = (double)f->snapshot[after].time;

	if (fabs(h1 - h0) > 0.1 * MAX(h0, h1) && (h - h0) * (h - h1) <= 0)
		return (h - h0) / (h1 - h0);
	return t1 > t0 ? ((double)f->snapshot[s].time - t0) / (t1 - t0) : 0.5;
}

static double site_bytes(const struct builder *b, size_t s, size_t site)
{
	const struct massif_file *f = b->file;
	size_t before = nearest_tree(f, s, -1), after = nearest_tree(f, s, 1);
	double heap = (double)f->snapshot[s].heap;

	if (before == SIZE_MAX && after == SIZE_MAX)
		return 0;
	if (before == SIZE_MAX || after == SIZE_MAX || before == after)
		return known_share(b, before == SIZE_MAX ? after : before, site) * heap;
	double part = progress(f, before, s, after);
	double h0 = (double)f->snapshot[before].heap, h1 = (double)f->snapshot[after].heap;
	double bytes = known_share(b, before, site) * h0 * (1 - part) +
		       known_share(b, after, site) * h1 * part;

	return bytes * heap / (h0 * (1 - part) + h1 * part);
}

/* Lays an area of height @value(snapshot, @which) on top of what is stacked so far. */
static struct chart_series *stack_area(struct builder *b, char *label, struct chart_color color,
				       double (*value)(const struct builder *, size_t snapshot,
						       size_t which),
				       size_t which)
{
	const struct massif_file *f = b->file;
	struct chart_series *s = chart_add(b->chart, label, CHART_AREA, color);
	double at_peak = value(b, b->peak, which), total = (double)f->snapshot[b->peak].total;
	char text[AXIS_TEXT_SIZE];

	for (size_t i = 0; i < f->snapshot_count; i++) {
		double high = b->low[i] + value(b, i, which);

		chart_add_point(s, (double)f->snapshot[i].time, b->low[i], high);
		b->low[i] = high;
	}
	axis_text(AXIS_BYTES, floor(at_peak + 0.5), text);
	double percent = total > 0 ? at_peak * 100 / total : 0;

	if (at_peak >= 0.5 && percent < 0.5)
		s->value = xasprintf("%s  <1 %%", text);
	else
		s->value = xasprintf("%s  %.0f %%", text, percent);
	return s;
}

static void stack_site(struct builder *b, size_t site)
{
	const char *location = b->sites.location[site];
	struct chart_series *s = stack_area(b, xstrdup(b->sites.function[site]),
					    chart_palette(site), site_bytes, site);

	s->detail = location ? xstrdup(location) : NULL;
}

/* What is left of the heap above the sites. */
static double other_bytes(const struct builder *b, size_t s, size_t which)
{
	return MAX(0.0, (double)b->file->snapshot[s].heap - b->low[s]);
}

static bool has_others(const struct builder *b)
{
	for (size_t i = 0; i < b->file->snapshot_count; i++)
		if (other_bytes(b, i, 0) >= 0.5)
			return true;
	return false;
}

static double extra_bytes(const struct builder *b, size_t s, size_t which)
{
	return (double)b->file->snapshot[s].extra;
}

static double stacks_bytes(const struct builder *b, size_t s, size_t which)
{
	return (double)b->file->snapshot[s].stacks;
}

/* The curve of the total, on top of the areas; the legend needs no entry for their edge. */
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
	if (has_heap && has_trees(b) && has_others(b))
		stack_area(b, xstrdup("other call sites"), other_color, other_bytes, 0);
	else if (has_heap && !has_trees(b))
		stack_area(b, xstrdup("useful heap"), heap_color, other_bytes, 0);
	if (has_extra)
		stack_area(b, xstrdup("added by the allocator (extra heap)"), extra_color,
			   extra_bytes, 0);
	if (has_stacks)
		stack_area(b, xstrdup("stacks"), stacks_color, stacks_bytes, 0);
}

static void add_marks(struct builder *b)
{
	for (size_t i = 0; has_trees(b) && i < b->file->snapshot_count; i++)
		if (b->file->snapshot[i].root && b->file->snapshot[i].heap)
			chart_add_mark(b->chart, (double)b->file->snapshot[i].time);
}

static void mark_peak(struct builder *b)
{
	const struct massif_snapshot *s = &b->file->snapshot[b->peak];
	char bytes[AXIS_TEXT_SIZE], time[AXIS_TEXT_SIZE];

	axis_text(AXIS_BYTES, (double)s->total, bytes);
	axis_text(b->chart->x.kind, (double)s->time, time);
	b->chart->has_peak = true;
	b->chart->peak_x = (double)s->time;
	b->chart->peak_y = (double)s->total;
	b->chart->peak_label = xasprintf("peak %s at %s", bytes, time);
}

static int set_x_axis(const struct massif_file *f, struct chart *c, char **why_out)
{
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
		c->x.max = MAX(c->x.max, (double)f->snapshot[i].time);
	c->x.max = MAX(c->x.max, 1);
	return 0;
}

/* Curves may be of one process that lives longer than the other: the axis holds both. */
static void add_rss(const struct samples_file *rss, struct chart *c)
{
	double largest = samples_chart_add_rss(rss, c);

	c->y.max = MAX(c->y.max, largest);
	for (size_t i = 0; i < rss->row_count; i++)
		if (rss->pid[i] == rss->pid[0])
			c->x.max = MAX(c->x.max, rss->time[i] * 1000);
}

static char *make_note(const struct builder *b)
{
	if (!has_trees(b))
		return xstrdup("Values are those at the peak.");
	return xstrdup("Values are those at the peak. Ticks at the foot: snapshots that know call "
		       "sites; between them, interpolated.");
}

static char *make_title(const struct massif_file *f, const struct picture_options *o)
{
	struct massif_text command = massif_file_line(f, f->command);

	return o->title ? xstrdup(o->title) : text_clean(command.at, command.size);
}

int massif_chart(const struct massif_file *f, const struct picture_options *o, struct chart *c,
		 char **why_out)
{
	struct builder b = {.file = f, .chart = c};

	if (!f->snapshot_count) {
		*why_out = xstrdup("there is no snapshot in it: nothing to draw");
		return -EINVAL;
	}
	if (set_x_axis(f, c, why_out))
		return -EINVAL;
	if (o->rss && c->x.kind != AXIS_MILLISECONDS) {
		*why_out = xstrdup("--rss needs a profile over time (--time-unit=ms)");
		return -EINVAL;
	}
	b.peak = find_peak(f);
	b.low = xcalloc(f->snapshot_count, sizeof(*b.low));
	massif_sites_find(f, &b.sites);
	stack_areas(&b);
	c->title = make_title(f, o);
	c->y = (struct axis){AXIS_BYTES, MAX((double)f->largest_total, 1)};
	c->y_title = xstrdup("memory in use");
	c->note = make_note(&b);
	if (o->rss)
		add_rss(o->rss, c);
	add_marks(&b);
	mark_peak(&b);
	massif_sites_deinit(&b.sites);
	free(b.low);
	return 0;
}
