/*
 * Drawing of a chart, once it is laid out, from the back to the front: the ground,
 * areas and curves, axes, the peak, title and legend.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/chart_internal.h"

/* From values to pixels. */

static double x_of(const struct chart_drawing *d, double x)
{
	return d->plot.x + MIN(MAX(x / d->chart->x.max, 0), 1) * d->plot.width;
}

static double y_of(const struct chart_drawing *d, const struct axis *axis, double y)
{
	return d->plot.y + d->plot.height - MIN(MAX(y / axis->max, 0), 1) * d->plot.height;
}

static const struct axis *axis_of(const struct chart_drawing *d, const struct chart_series *s)
{
	return s->is_right ? &d->right : &d->y;
}

/* The ground: bands, grid, axes. */

static void draw_bands(const struct chart_drawing *d)
{
	cairo_set_source_rgb(d->cr, 0.955, 0.955, 0.955);
	for (size_t i = 0; i + 1 < d->chart->band_count; i += 2) {
		double x = x_of(d, d->chart->band[i]);

		cairo_rectangle(d->cr, x, d->plot.y, x_of(d, d->chart->band[i + 1]) - x,
				d->plot.height);
		cairo_fill(d->cr);
	}
}

/* A line of one pixel, on the pixel grid. */
static void line(const struct chart_drawing *d, double x0, double y0, double x1, double y1)
{
	cairo_set_line_width(d->cr, 1);
	cairo_move_to(d->cr, floor(x0) + 0.5, floor(y0) + 0.5);
	cairo_line_to(d->cr, floor(x1) + 0.5, floor(y1) + 0.5);
	cairo_stroke(d->cr);
}

static void draw_y_grid(const struct chart_drawing *d)
{
	const struct axis *axis = &d->y;
	double step = axis_step(axis, chart_y_ticks(d));

	chart_set_grey(d, 0.87);
	for (double v = step; v <= axis->max; v += step)
		line(d, d->plot.x, y_of(d, axis, v), d->plot.x + d->plot.width, y_of(d, axis, v));
}

static void draw_y_labels(const struct chart_drawing *d, const struct axis *axis, bool is_right)
{
	double step = axis_step(axis, chart_y_ticks(d));
	double x = is_right ? d->plot.x + d->plot.width + 0.5 * d->font : d->plot.x - 0.5 * d->font;
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max; v += step) {
		double y = y_of(d, axis, v);

		axis_label(axis, step, v, text);
		chart_put_text(d, x, y + 0.35 * d->font, is_right ? 0 : 1, text);
		if (is_right)
			line(d, d->plot.x + d->plot.width - 4, y, d->plot.x + d->plot.width, y);
	}
}

static void draw_x_labels(const struct chart_drawing *d)
{
	const struct axis *axis = &d->chart->x;
	double foot = d->plot.y + d->plot.height;
	double step = axis_step(axis, (unsigned)MAX(2.0, d->plot.width / (d->font * 6.5)));
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max * (1 + 1e-9); v += step) {
		double x = x_of(d, v);

		chart_set_grey(d, CHART_GREY);
		line(d, x, foot, x, foot + 4);
		axis_label(axis, step, v, text);
		double half = chart_text_width(d, text) / 2;

		chart_put_text(d, MIN(x, d->width - half - 2), foot + 4 + 1.1 * d->font, 0.5, text);
	}
}

static const struct chart_series *first_of_side(const struct chart *c, bool is_right)
{
	for (size_t i = 0; i < c->series_count; i++)
		if (c->series[i].is_right == is_right)
			return &c->series[i];
	return NULL;
}

static void set_axis_color(const struct chart_drawing *d, bool is_right)
{
	const struct chart_series *s = first_of_side(d->chart, is_right);

	if (d->chart->has_right && s)
		chart_set_dark(d, s->color);
	else
		chart_set_grey(d, CHART_GREY);
}

static void draw_axis_titles(const struct chart_drawing *d)
{
	const struct chart *c = d->chart;
	double above = d->plot.y - 1.1 * d->font;

	if (!d->has_titles)
		return;
	set_axis_color(d, false);
	if (c->y_title)
		chart_put_text(d, d->font, above, 0, c->y_title);
	set_axis_color(d, true);
	if (c->has_right && c->right_title)
		chart_put_text(d, d->width - d->font, above, 1, c->right_title);
	chart_set_grey(d, CHART_GREY);
	double below = d->plot.y + d->plot.height + 4 + 2.7 * d->font;

	if (c->x_title)
		chart_put_text(d, d->plot.x + d->plot.width / 2, below, 0.5, c->x_title);
}

static void draw_axes(const struct chart_drawing *d)
{
	double foot = d->plot.y + d->plot.height, end = d->plot.x + d->plot.width;

	chart_set_font(d, 1, false);
	set_axis_color(d, false);
	draw_y_labels(d, &d->y, false);
	if (d->chart->has_right) {
		set_axis_color(d, true);
		draw_y_labels(d, &d->right, true);
	}
	draw_x_labels(d);
	draw_axis_titles(d);
	chart_set_grey(d, CHART_GREY);
	line(d, d->plot.x, foot, end, foot);
	line(d, d->plot.x, d->plot.y, d->plot.x, foot);
	for (size_t i = 0; i < d->chart->mark_count; i++) {
		double x = x_of(d, d->chart->mark[i]);

		chart_set_grey(d, 0.15);
		line(d, x, foot - 5, x, foot);
	}
}

/* Series. */

/* One point alone is a bar, to be seen at all. */
static void draw_bar(const struct chart_drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);
	double width = 0.5 * d->font, high = y_of(d, axis, s->point[0].high);
	double x = MIN(MAX(x_of(d, s->point[0].x) - width / 2, d->plot.x),
		       d->plot.x + d->plot.width - width);

	cairo_rectangle(d->cr, x, high, width, y_of(d, axis, s->point[0].low) - high);
	chart_set_color(d, s->color);
	cairo_fill(d->cr);
}

static void draw_area(const struct chart_drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);

	if (s->count == 1) {
		draw_bar(d, s);
		return;
	}
	for (size_t i = 0; i < s->count; i++)
		cairo_line_to(d->cr, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].high));
	for (size_t i = s->count; i-- > 0;)
		cairo_line_to(d->cr, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].low));
	cairo_close_path(d->cr);
	chart_set_color(d, s->color);
	cairo_fill(d->cr);
}

/*
 * The points of one column of pixels, drawn as first,
 * lowest, highest, last: all that can be seen of them.
 */
struct column {
	double x, first, low, high, last;
	size_t count;
};

static void draw_column(const struct chart_drawing *d, struct column *c, bool *is_down)
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

static bool is_dashed(const struct chart_series *s)
{
	return s->style == CHART_DASHES || s->style == CHART_STEP_DASHES;
}

static bool has_steps(const struct chart_series *s)
{
	return s->style == CHART_STEPS || s->style == CHART_STEP_DASHES;
}

static void draw_curve(const struct chart_drawing *d, const struct chart_series *s)
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
			if (has_steps(s))
				cairo_line_to(d->cr, x, last);
		}
		add_to_column(&column, x, y);
	}
	draw_column(d, &column, &is_down);
	chart_set_color(d, s->color);
	cairo_set_line_width(d->cr, d->font * 0.14);
	cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
	if (is_dashed(s))
		cairo_set_dash(d->cr, dash, 2, 0);
	cairo_stroke(d->cr);
	cairo_set_dash(d->cr, NULL, 0, 0);
}

/*
 * Areas from the first to the last, curves from the
 * last to the first, on top of all the dashed ones.
 */
static void draw_series(const struct chart_drawing *d)
{
	cairo_save(d->cr);
	cairo_rectangle(d->cr, d->plot.x, d->plot.y, d->plot.width + 1, d->plot.height + 1);
	cairo_clip(d->cr);
	for (size_t i = 0; i < d->chart->series_count; i++)
		if (d->chart->series[i].style == CHART_AREA)
			draw_area(d, &d->chart->series[i]);
	for (int dashes = 0; dashes < 2; dashes++)
		for (size_t i = d->chart->series_count; i-- > 0;) {
			const struct chart_series *s = &d->chart->series[i];

			if (s->style != CHART_AREA && is_dashed(s) == (bool)dashes)
				draw_curve(d, s);
		}
	cairo_restore(d->cr);
}

/* Text that can be read on whatever is below it. */
static void put_halo_text(const struct chart_drawing *d, double middle, double y, const char *text)
{
	cairo_move_to(d->cr, middle - chart_text_width(d, text) / 2, y);
	cairo_text_path(d->cr, text);
	cairo_set_source_rgba(d->cr, 1, 1, 1, 0.9);
	cairo_set_line_width(d->cr, d->font * 0.4);
	cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
	cairo_stroke_preserve(d->cr);
	chart_set_grey(d, 0.1);
	cairo_fill(d->cr);
}

static void draw_peak(const struct chart_drawing *d)
{
	const struct chart *c = d->chart;

	if (!c->has_peak)
		return;
	double x = x_of(d, c->peak_x), y = y_of(d, &d->y, c->peak_y), radius = d->font * 0.33;

	chart_set_font(d, 1, true);
	double half = chart_text_width(d, c->peak_label) / 2;
	double left = d->plot.x + 3, right = d->plot.x + d->plot.width - 3;
	double middle = MAX(MIN(x, right - half), left + half),
	       base = MAX(y - 0.8 * d->font, d->plot.y + d->font);

	if (2 * half <= right - left)
		put_halo_text(d, middle, base, c->peak_label);
	cairo_new_sub_path(d->cr);
	cairo_arc(d->cr, x, y, radius, 0, 2 * M_PI);
	cairo_set_source_rgb(d->cr, 1, 1, 1);
	cairo_fill_preserve(d->cr);
	chart_set_grey(d, 0.1);
	cairo_set_line_width(d->cr, d->font * 0.15);
	cairo_stroke(d->cr);
}

/* Title and legend. */

static void draw_title(const struct chart_drawing *d)
{
	chart_set_font(d, 1.35, true);
	_cleanup_free_ char *title = chart_fit(d, d->chart->title, d->width - 2 * d->font, false);

	chart_set_grey(d, 0.1);
	chart_put_text(d, d->width / 2, 2 * d->font, 0.5, title);
}

static void draw_swatch(const struct chart_drawing *d, const struct chart_series *s, double x,
			double y)
{
	double size = d->font * 0.85;

	chart_set_color(d, s->color);
	if (s->style == CHART_AREA) {
		cairo_rectangle(d->cr, x, y - size, size, size);
		cairo_fill(d->cr);
		return;
	}
	const double dash[] = {4, 2};

	cairo_set_line_width(d->cr, d->font * 0.2);
	if (is_dashed(s))
		cairo_set_dash(d->cr, dash, 2, 0);
	cairo_move_to(d->cr, x - 0.1 * d->font, y - size / 2);
	cairo_line_to(d->cr, x + size + 0.1 * d->font, y - size / 2);
	cairo_stroke(d->cr);
	cairo_set_dash(d->cr, NULL, 0, 0);
}

/* Name and detail in @room; the name is shortened for the detail, until the detail has to go. */
static char *fit_label(const struct chart_drawing *d, const struct chart_series *s, double room)
{
	if (!s->detail)
		return chart_fit(d, s->label, room, true);
	_cleanup_free_ char *detail = xasprintf(" %s", s->detail);
	double left = room - chart_text_width(d, detail);

	if (left < MIN(10 * d->font, chart_text_width(d, s->label)))
		return chart_fit(d, s->label, room, true);
	_cleanup_free_ char *name = chart_fit(d, s->label, left, true);

	return xasprintf("%s%s", name, detail);
}

static void draw_legend(const struct chart_drawing *d)
{
	double gap = 2 * d->font, column = (d->width - 2 * d->font + gap) / d->legend_columns - gap;

	chart_set_font(d, 1, false);
	for (size_t i = 0; d->legend_rows && i < d->chart->series_count; i++) {
		const struct chart_series *s = &d->chart->series[i];
		double x = d->font + (double)(i / d->legend_rows) * (column + gap);
		double y = d->legend_y + (double)(i % d->legend_rows + 1) * 1.5 * d->font;
		double value = s->value ? chart_text_width(d, s->value) + d->font : 0;
		_cleanup_free_ char *label = fit_label(d, s, column - value - 1.4 * d->font);

		draw_swatch(d, s, x, y);
		chart_set_grey(d, 0.1);
		chart_put_text(d, x + 1.4 * d->font, y, 0, label);
		if (s->value)
			chart_put_text(d, x + column, y, 1, s->value);
	}
	if (d->has_note) {
		chart_set_font(d, 0.9, false);
		_cleanup_free_ char *note =
			chart_fit(d, d->chart->note, d->width - 2 * d->font, false);

		chart_set_grey(d, CHART_GREY);
		chart_put_text(d, d->font, d->height - 0.7 * d->font, 0, note);
	}
}

void chart_draw(const struct chart *c, cairo_t *cr, double width, double height)
{
	struct chart_drawing d = {
		.chart = c,
		.cr = cr,
		.width = width,
		.height = height,
	};

	cairo_set_source_rgb(cr, 1, 1, 1);
	cairo_paint(cr);
	chart_measure(&d);
	draw_bands(&d);
	draw_y_grid(&d);
	draw_series(&d);
	draw_axes(&d);
	draw_peak(&d);
	draw_title(&d);
	draw_legend(&d);
}
