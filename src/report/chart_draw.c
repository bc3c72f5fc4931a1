/*
 * Drawing of a chart. First everything is measured: texts take what they need,
 * the plot gets the rest; then it is drawn from the back to the front. A part
 * that would leave the plot too small is dropped: the note, the legend, axis titles.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "report/chart.h"

#define FONT "sans-serif"
#define GREY 0.40

/* The size that has text of 12 pixels; larger pictures have larger text, but not as much larger. */
#define PICTURE_BASE_WIDTH 800
#define PICTURE_BASE_HEIGHT 600
#define HEADROOM 2.4 /* what is free above the highest value, for the peak's label, in font sizes */

struct box {
	double x, y, width, height;
};

struct drawing {
	const struct chart *chart;
	struct axis y, right;  /* the chart's, with room above the highest value */
	cairo_t *cr;
	double width, height;
	double font;           /* size of common text, pixels */
	struct box plot;
	unsigned legend_columns, legend_rows; /* rows 0 = no legend */
	double legend_y;
	bool has_titles, has_note;
};

/* Text. */

static void set_font(const struct drawing *d, double scale, bool is_bold)
{
	cairo_select_font_face(d->cr, FONT, CAIRO_FONT_SLANT_NORMAL,
			       is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(d->cr, d->font * scale);
}

static double text_width(const struct drawing *d, const char *text)
{
	cairo_text_extents_t e;

	cairo_text_extents(d->cr, text, &e);
	return e.x_advance;
}

/* @text in the current font, shortened until it is at most @room wide. The caller frees it. */
static char *fit(const struct drawing *d, const char *text, double room, bool is_name)
{
	size_t max = text_length(text);

	for (;;) {
		_cleanup_free_ char *out = is_name ? text_shorten(text, max) : text_cut(text, max);
		double width = text_width(d, out);

		if (width <= room || !max)
			return_ptr(out);
		/* Two characters above the estimate, for the next ones may be narrow. */
		max = MIN(max - 1, (size_t)(MAX(room, 0) / width * (double)text_length(out)) + 2);
	}
}

/* @anchor: 0 = @x is the left end, 0.5 = the middle, 1 = the right end. */
static void put_text(const struct drawing *d, double x, double y, double anchor, const char *text)
{
	cairo_move_to(d->cr, x - anchor * text_width(d, text), y);
	cairo_show_text(d->cr, text);
}

static void set_grey(const struct drawing *d, double level)
{
	cairo_set_source_rgb(d->cr, level, level, level);
}

static void set_color(const struct drawing *d, struct chart_color c)
{
	cairo_set_source_rgb(d->cr, c.red, c.green, c.blue);
}

/* Axis titles and labels darker than the curve they stand for, to be readable. */
static void set_dark(const struct drawing *d, struct chart_color c)
{
	cairo_set_source_rgb(d->cr, c.red * 0.8, c.green * 0.8, c.blue * 0.8);
}

/* Layout. */

static unsigned y_ticks(const struct drawing *d)
{
	return (unsigned)MAX(2.0, d->plot.height / (d->font * 3.6));
}

/* The widest label of a vertical axis. */
static double label_width(const struct drawing *d, const struct axis *axis)
{
	double step = axis_step(axis, y_ticks(d)), widest = 0;
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max; v += step) {
		axis_label(axis, step, v, text);
		widest = MAX(widest, text_width(d, text));
	}
	return widest;
}

static void measure_legend(struct drawing *d)
{
	size_t n = d->chart->series_count;

	d->legend_columns = d->width >= 112 * d->font ? 3 : d->width >= 40 * d->font ? 2 : 1;
	d->legend_rows = (unsigned)((n + d->legend_columns - 1) / d->legend_columns);
}

static double legend_height(const struct drawing *d)
{
	return d->legend_rows ? (d->legend_rows + 0.6) * d->font * 1.5 : 0;
}

static void measure(struct drawing *d)
{
	const struct chart *c = d->chart;
	double line = d->font * 1.5;

	measure_legend(d);
	d->has_titles = d->height > 22 * d->font;
	d->has_note = c->note && d->height > 26 * d->font;
	if (d->height - legend_height(d) < MAX(18 * d->font, 0.55 * d->height))
		d->legend_rows = 0;
	double top = d->font * (d->has_titles ? 4.7 : 2.8);
	double bottom = (d->has_titles ? 2 : 1) * line + 0.8 * d->font + legend_height(d) + (d->has_note ? line : 0);
	double height = MAX(d->height - top - bottom, 10), headroom = 1 - MIN(HEADROOM * d->font / height, 0.5);

	d->plot.height = height;
	d->y = (struct axis){c->y.kind, c->y.max / headroom};
	d->right = (struct axis){c->right.kind, c->right.max / headroom};
	set_font(d, 1, false);
	double left = d->font + label_width(d, &d->y) + 0.6 * d->font;
	double right = c->has_right ? d->font + label_width(d, &d->right) + 0.6 * d->font : 2 * d->font;

	d->plot = (struct box){left, top, MAX(d->width - left - right, 10), height};
	d->legend_y = d->plot.y + d->plot.height + (d->has_titles ? 2 : 1) * line + 0.8 * d->font;
}

/* From values to pixels. */

static double x_of(const struct drawing *d, double x)
{
	return d->plot.x + MIN(MAX(x / d->chart->x.max, 0), 1) * d->plot.width;
}

static double y_of(const struct drawing *d, const struct axis *axis, double y)
{
	return d->plot.y + d->plot.height - MIN(MAX(y / axis->max, 0), 1) * d->plot.height;
}

static const struct axis *axis_of(const struct drawing *d, const struct chart_series *s)
{
	return s->is_right ? &d->right : &d->y;
}

/* The ground: bands, grid, axes. */

static void draw_bands(const struct drawing *d)
{
	cairo_set_source_rgb(d->cr, 0.955, 0.955, 0.955);
	for (size_t i = 0; i + 1 < d->chart->band_count; i += 2) {
		double x = x_of(d, d->chart->band[i]);

		cairo_rectangle(d->cr, x, d->plot.y, x_of(d, d->chart->band[i + 1]) - x, d->plot.height);
		cairo_fill(d->cr);
	}
}

/* A line of one pixel, on the pixel grid. */
static void line(const struct drawing *d, double x0, double y0, double x1, double y1)
{
	cairo_set_line_width(d->cr, 1);
	cairo_move_to(d->cr, floor(x0) + 0.5, floor(y0) + 0.5);
	cairo_line_to(d->cr, floor(x1) + 0.5, floor(y1) + 0.5);
	cairo_stroke(d->cr);
}

static void draw_y_grid(const struct drawing *d)
{
	const struct axis *axis = &d->y;
	double step = axis_step(axis, y_ticks(d));

	set_grey(d, 0.87);
	for (double v = step; v <= axis->max; v += step)
		line(d, d->plot.x, y_of(d, axis, v), d->plot.x + d->plot.width, y_of(d, axis, v));
}

static void draw_y_labels(const struct drawing *d, const struct axis *axis, bool is_right)
{
	double step = axis_step(axis, y_ticks(d));
	double x = is_right ? d->plot.x + d->plot.width + 0.5 * d->font : d->plot.x - 0.5 * d->font;
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max; v += step) {
		double y = y_of(d, axis, v);

		axis_label(axis, step, v, text);
		put_text(d, x, y + 0.35 * d->font, is_right ? 0 : 1, text);
		if (is_right)
			line(d, d->plot.x + d->plot.width - 4, y, d->plot.x + d->plot.width, y);
	}
}

static void draw_x_labels(const struct drawing *d)
{
	const struct axis *axis = &d->chart->x;
	double foot = d->plot.y + d->plot.height;
	double step = axis_step(axis, (unsigned)MAX(2.0, d->plot.width / (d->font * 6.5)));
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max * (1 + 1e-9); v += step) {
		double x = x_of(d, v);

		set_grey(d, GREY);
		line(d, x, foot, x, foot + 4);
		axis_label(axis, step, v, text);
		double half = text_width(d, text) / 2;

		put_text(d, MIN(x, d->width - half - 2), foot + 4 + 1.1 * d->font, 0.5, text);
	}
}

static const struct chart_series *first_of_side(const struct chart *c, bool is_right)
{
	for (size_t i = 0; i < c->series_count; i++)
		if (c->series[i].is_right == is_right)
			return &c->series[i];
	return NULL;
}

static void set_axis_color(const struct drawing *d, bool is_right)
{
	const struct chart_series *s = first_of_side(d->chart, is_right);

	if (d->chart->has_right && s)
		set_dark(d, s->color);
	else
		set_grey(d, GREY);
}

static void draw_axis_titles(const struct drawing *d)
{
	const struct chart *c = d->chart;
	double above = d->plot.y - 1.1 * d->font;

	if (!d->has_titles)
		return;
	set_axis_color(d, false);
	if (c->y_title)
		put_text(d, d->font, above, 0, c->y_title);
	set_axis_color(d, true);
	if (c->has_right && c->right_title)
		put_text(d, d->width - d->font, above, 1, c->right_title);
	set_grey(d, GREY);
	if (c->x_title)
		put_text(d, d->plot.x + d->plot.width / 2, d->plot.y + d->plot.height + 4 + 2.7 * d->font, 0.5, c->x_title);
}

static void draw_axes(const struct drawing *d)
{
	double foot = d->plot.y + d->plot.height, end = d->plot.x + d->plot.width;

	set_font(d, 1, false);
	set_axis_color(d, false);
	draw_y_labels(d, &d->y, false);
	if (d->chart->has_right) {
		set_axis_color(d, true);
		draw_y_labels(d, &d->right, true);
	}
	draw_x_labels(d);
	draw_axis_titles(d);
	set_grey(d, GREY);
	line(d, d->plot.x, foot, end, foot);
	line(d, d->plot.x, d->plot.y, d->plot.x, foot);
	for (size_t i = 0; i < d->chart->mark_count; i++) {
		double x = x_of(d, d->chart->mark[i]);

		set_grey(d, 0.15);
		line(d, x, foot - 5, x, foot);
	}
}

/* Series. */

static void draw_area(const struct drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);

	for (size_t i = 0; i < s->count; i++)
		cairo_line_to(d->cr, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].high));
	for (size_t i = s->count; i-- > 0;)
		cairo_line_to(d->cr, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].low));
	cairo_close_path(d->cr);
	set_color(d, s->color);
	cairo_fill(d->cr);
}

/* The points of one column of pixels, drawn as first, lowest, highest, last: all that can be seen of them. */
struct column {
	double x, first, low, high, last;
	size_t count;
};

static void draw_column(const struct drawing *d, struct column *c, bool *is_down)
{
	double y[] = {c->first, c->low, c->high, c->last};

	for (size_t i = 0; c->count && i < ARRAY_SIZE(y); i++) {
		if (*is_down)
			cairo_line_to(d->cr, c->x, y[i]);
		else
			cairo_move_to(d->cr, c->x, y[i]);
		*is_down = true;
	}
	c->count = 0;
}

static void add_to_column(struct column *c, double x, double y)
{
	if (!c->count)
		*c = (struct column){.x = x, .first = y, .low = y, .high = y};
	c->low = MIN(c->low, y);
	c->high = MAX(c->high, y);
	c->last = y;
	c->count++;
}

static void draw_curve(const struct drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);
	const double dash[] = {6, 4};
	struct column column = {0};
	bool is_down = false;

	for (size_t i = 0; i < s->count; i++) {
		double x = x_of(d, s->point[i].x);

		if (isnan(s->point[i].high)) {
			draw_column(d, &column, &is_down);
			is_down = false;
			continue;
		}
		double y = y_of(d, axis, s->point[i].high);

		if (column.count && fabs(x - column.x) >= 0.5) {
			double last = column.last;

			draw_column(d, &column, &is_down);
			if (s->style == CHART_STEPS)
				cairo_line_to(d->cr, x, last);
		}
		add_to_column(&column, x, y);
	}
	draw_column(d, &column, &is_down);
	set_color(d, s->color);
	cairo_set_line_width(d->cr, d->font * 0.14);
	cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
	if (s->style == CHART_DASHES)
		cairo_set_dash(d->cr, dash, 2, 0);
	cairo_stroke(d->cr);
	cairo_set_dash(d->cr, NULL, 0, 0);
}

/* Areas from the first to the last, curves from the last to the first, on top of all the dashed ones. */
static void draw_series(const struct drawing *d)
{
	cairo_save(d->cr);
	cairo_rectangle(d->cr, d->plot.x, d->plot.y, d->plot.width + 1, d->plot.height + 1);
	cairo_clip(d->cr);
	for (size_t i = 0; i < d->chart->series_count; i++)
		if (d->chart->series[i].style == CHART_AREA)
			draw_area(d, &d->chart->series[i]);
	for (int dashes = 0; dashes < 2; dashes++)
		for (size_t i = d->chart->series_count; i-- > 0;)
			if (d->chart->series[i].style != CHART_AREA && (d->chart->series[i].style == CHART_DASHES) == dashes)
				draw_curve(d, &d->chart->series[i]);
	cairo_restore(d->cr);
}

/* Text that can be read on whatever is below it. */
static void put_halo_text(const struct drawing *d, double middle, double y, const char *text)
{
	cairo_move_to(d->cr, middle - text_width(d, text) / 2, y);
	cairo_text_path(d->cr, text);
	cairo_set_source_rgba(d->cr, 1, 1, 1, 0.9);
	cairo_set_line_width(d->cr, d->font * 0.4);
	cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
	cairo_stroke_preserve(d->cr);
	set_grey(d, 0.1);
	cairo_fill(d->cr);
}

static void draw_peak(const struct drawing *d)
{
	const struct chart *c = d->chart;

	if (!c->has_peak)
		return;
	double x = x_of(d, c->peak_x), y = y_of(d, &d->y, c->peak_y), radius = d->font * 0.33;

	set_font(d, 1, true);
	double half = text_width(d, c->peak_label) / 2;
	double left = d->plot.x + 3, right = d->plot.x + d->plot.width - 3;
	double middle = MAX(MIN(x, right - half), left + half), base = MAX(y - 0.8 * d->font, d->plot.y + d->font);

	if (2 * half <= right - left)
		put_halo_text(d, middle, base, c->peak_label);
	cairo_new_sub_path(d->cr);
	cairo_arc(d->cr, x, y, radius, 0, 2 * M_PI);
	cairo_set_source_rgb(d->cr, 1, 1, 1);
	cairo_fill_preserve(d->cr);
	set_grey(d, 0.1);
	cairo_set_line_width(d->cr, d->font * 0.15);
	cairo_stroke(d->cr);
}

/* Title and legend. */

static void draw_title(const struct drawing *d)
{
	set_font(d, 1.35, true);
	_cleanup_free_ char *title = fit(d, d->chart->title, d->width - 2 * d->font, false);

	set_grey(d, 0.1);
	put_text(d, d->width / 2, 2 * d->font, 0.5, title);
}

static void draw_swatch(const struct drawing *d, const struct chart_series *s, double x, double y)
{
	double size = d->font * 0.85;

	set_color(d, s->color);
	if (s->style == CHART_AREA) {
		cairo_rectangle(d->cr, x, y - size, size, size);
		cairo_fill(d->cr);
		return;
	}
	const double dash[] = {4, 2};

	cairo_set_line_width(d->cr, d->font * 0.2);
	if (s->style == CHART_DASHES)
		cairo_set_dash(d->cr, dash, 2, 0);
	cairo_move_to(d->cr, x - 0.1 * d->font, y - size / 2);
	cairo_line_to(d->cr, x + size + 0.1 * d->font, y - size / 2);
	cairo_stroke(d->cr);
	cairo_set_dash(d->cr, NULL, 0, 0);
}

/* Name and detail in @room; the name is shortened for the detail, until the detail has to go. */
static char *fit_label(const struct drawing *d, const struct chart_series *s, double room)
{
	if (!s->detail)
		return fit(d, s->label, room, true);
	_cleanup_free_ char *detail = xasprintf(" %s", s->detail);
	double left = room - text_width(d, detail);

	if (left < MIN(10 * d->font, text_width(d, s->label)))
		return fit(d, s->label, room, true);
	_cleanup_free_ char *name = fit(d, s->label, left, true);

	return xasprintf("%s%s", name, detail);
}

static void draw_legend(const struct drawing *d)
{
	double gap = 2 * d->font, column = (d->width - 2 * d->font + gap) / d->legend_columns - gap;

	set_font(d, 1, false);
	for (size_t i = 0; d->legend_rows && i < d->chart->series_count; i++) {
		const struct chart_series *s = &d->chart->series[i];
		double x = d->font + (double)(i / d->legend_rows) * (column + gap);
		double y = d->legend_y + (double)(i % d->legend_rows + 1) * 1.5 * d->font;
		double value = s->value ? text_width(d, s->value) + d->font : 0;
		_cleanup_free_ char *label = fit_label(d, s, column - value - 1.4 * d->font);

		draw_swatch(d, s, x, y);
		set_grey(d, 0.1);
		put_text(d, x + 1.4 * d->font, y, 0, label);
		if (s->value)
			put_text(d, x + column, y, 1, s->value);
	}
	if (d->has_note) {
		set_font(d, 0.9, false);
		_cleanup_free_ char *note = fit(d, d->chart->note, d->width - 2 * d->font, false);

		set_grey(d, GREY);
		put_text(d, d->font, d->height - 0.7 * d->font, 0, note);
	}
}

void chart_draw(const struct chart *c, cairo_t *cr, double width, double height)
{
	double scale = sqrt(MIN(width / PICTURE_BASE_WIDTH, height / PICTURE_BASE_HEIGHT));
	struct drawing d = {
		.chart = c,
		.cr = cr,
		.width = width,
		.height = height,
		.font = 12 * MIN(MAX(scale, 0.75), 3),
	};

	cairo_set_source_rgb(cr, 1, 1, 1);
	cairo_paint(cr);
	measure(&d);
	draw_bands(&d);
	draw_y_grid(&d);
	draw_series(&d);
	draw_axes(&d);
	draw_peak(&d);
	draw_title(&d);
	draw_legend(&d);
}
