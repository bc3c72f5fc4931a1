/*
 * The contents of a chart: series, points, marks, and the palette.
 */
#include "report/chart/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

struct canvas_color chart_palette(size_t i)
{
	static const struct canvas_color palette[CHART_PALETTE_SIZE] = {
		{0.34, 0.71, 0.91}, /* sky blue */
		{0.90, 0.62, 0.00}, /* orange */
		{0.00, 0.62, 0.45}, /* bluish green */
		{0.95, 0.89, 0.26}, /* yellow */
		{0.00, 0.45, 0.70}, /* blue */
		{0.84, 0.37, 0.00}, /* vermillion */
		{0.80, 0.47, 0.65}, /* reddish purple */
	};

	return palette[i % CHART_PALETTE_SIZE];
}

struct chart_series *chart_add(struct chart *c, char *label, enum chart_style style,
			       struct canvas_color color)
{
	c->series = xgrow(c->series, &c->series_capacity, c->series_count + 1, sizeof(*c->series));
	struct chart_series *s = &c->series[c->series_count++];

	*s = (struct chart_series){.label = label, .style = style, .color = color};
	return s;
}

void chart_add_point(struct chart_series *s, double x, double low, double high)
{
	s->point = xgrow(s->point, &s->capacity, s->count + 1, sizeof(*s->point));
	s->point[s->count++] = (struct chart_point){.x = x, .low = low, .high = high};
}

void chart_add_band(struct chart *c, double x)
{
	c->band = xgrow(c->band, &c->band_capacity, c->band_count + 1, sizeof(*c->band));
	c->band[c->band_count++] = x;
}

void chart_add_mark(struct chart *c, double x)
{
	c->mark = xgrow(c->mark, &c->mark_capacity, c->mark_count + 1, sizeof(*c->mark));
	c->mark[c->mark_count++] = x;
}

void chart_deinit(struct chart *c)
{
	for (size_t i = 0; i < c->series_count; i++) {
		free(c->series[i].label);
		free(c->series[i].detail);
		free(c->series[i].value);
		free(c->series[i].point);
	}
	free(c->series);
	free(c->title);
	free(c->x_title);
	free(c->y_title);
	free(c->right_title);
	free(c->note);
	free(c->peak_label);
	free(c->band);
	free(c->mark);
	*c = (struct chart){0};
}

/*
 * Layout of a chart: texts take the room they need, the plot gets the rest. Parts that would make
 * the plot too small are dropped: axis titles, the note, the legend.
 */

#define RIGHT_ROOM 1.06 /* the right axis has more, so that two flat curves do not coincide */
#define HEADROOM 2.4 /* headroom above the highest value, for the peak's label, in font sizes */

/*
 * The size at which text has 12 pixels; larger pictures have larger text, but less than
 * proportionally.
 */
#define BASE_WIDTH 800
#define BASE_HEIGHT 600

/* Text. */

void chart_set_font(const struct chart_drawing *d, double scale, bool is_bold)
{
	canvas_set_font(d->canvas, d->font * scale, is_bold);
}

char *chart_fit(const struct chart_drawing *d, const char *text, double room, bool is_name)
{
	size_t max = text_length(text);

	for (;;) {
		_cleanup_free_ char *out = is_name ? text_shorten(text, max) : text_cut(text, max);
		double width = canvas_text_width(d->canvas, out);

		if (width <= room || !max)
			return_ptr(out);
		/* Two characters more than the estimate, since the next ones may be narrow. */
		max = MIN(max - 1, (size_t)(MAX(room, 0) / width * (double)text_length(out)) + 2);
	}
}

void chart_set_grey(const struct chart_drawing *d, double level)
{
	canvas_set_color(d->canvas, (struct canvas_color){level, level, level});
}

/* Darker than the curve it belongs to, to be readable as text. */
static void chart_set_dark(const struct chart_drawing *d, struct canvas_color c)
{
	canvas_set_color(d->canvas,
			 (struct canvas_color){c.red * 0.8, c.green * 0.8, c.blue * 0.8});
}

/* Layout. */

/* The number of ticks that fit on a vertical axis. */
static unsigned chart_y_ticks(const struct chart_drawing *d)
{
	return (unsigned)MAX(2.0, d->plot.height / (d->font * 3.6));
}

/* The widest label of a vertical axis. */
static double label_width(const struct chart_drawing *d, const struct axis *axis)
{
	double step = axis_step(axis, chart_y_ticks(d)), widest = 0;
	char text[AXIS_TEXT_SIZE];

	for (double v = 0; v <= axis->max; v += step) {
		axis_label(axis, step, v, text);
		widest = MAX(widest, canvas_text_width(d->canvas, text));
	}
	return widest;
}

static double legend_height(const struct chart_drawing *d)
{
	return d->legend_rows ? (d->legend_rows + 0.6) * d->font * 1.5 : 0;
}

static bool has_legend_room(const struct chart_drawing *d)
{
	return d->height - legend_height(d) >= MAX(18 * d->font, 0.55 * d->height);
}

/* Between two columns, and between a swatch and its label. */
#define LEGEND_GAP 2.0
#define SWATCH_ROOM 1.4

static double column_width(const struct chart_drawing *d)
{
	double gap = LEGEND_GAP * d->font;

	return (d->width - 2 * d->font + gap) / d->legend_columns - gap;
}

/* What a column leaves to the label of @s. */
static double label_room(const struct chart_drawing *d, const struct chart_series *s)
{
	double value = s->value ? canvas_text_width(d->canvas, s->value) + d->font : 0;

	return column_width(d) - value - SWATCH_ROOM * d->font;
}

/* "a.c:7" of a detail "(a.c:7)"; NULL if it is none. */
static char *source_line(const char *detail)
{
	size_t size = detail ? strlen(detail) : 0;

	return size > 2 && strchr(detail, ':') ? xstrndup(detail + 1, size - 2) : NULL;
}

static bool has_room_for_lines(const struct chart_drawing *d)
{
	for (size_t i = 0; i < d->chart->series_count; i++) {
		const struct chart_series *s = &d->chart->series[i];
		_cleanup_free_ char *line = source_line(s->detail);

		if (line && canvas_text_width(d->canvas, line) > label_room(d, s))
			return false;
	}
	return true;
}

static void set_columns(struct chart_drawing *d, unsigned columns)
{
	size_t n = d->chart->series_count;

	d->legend_columns = columns;
	d->legend_rows = (unsigned)((n + columns - 1) / columns);
}

#define NARROW 50.0 /* in a picture of less, in sizes of its font, names need all of the width */

/* Fewer columns if source lines would be cut off, and the picture is high enough. */
static void measure_legend(struct chart_drawing *d)
{
	unsigned columns = d->width >= 112 * d->font ? 3 : d->width >= 40 * d->font ? 2 : 1;

	chart_set_font(d, 1, false);
	set_columns(d, 1);
	if (d->width < NARROW * d->font && has_legend_room(d))
		return;
	for (unsigned k = columns; k > 0; k--) {
		set_columns(d, k);
		if (!has_legend_room(d))
			break;
		if (has_room_for_lines(d))
			return;
	}
	set_columns(d, columns);
}

/* Sets all of @d except chart, canvas, width, height. */
static void chart_measure(struct chart_drawing *d)
{
	const struct chart *c = d->chart;
	double scale = sqrt(MIN(d->width / BASE_WIDTH, d->height / BASE_HEIGHT));

	d->font = 12 * MIN(MAX(scale, 0.75), 3);
	double line = d->font * 1.5;

	measure_legend(d);
	d->has_titles = d->height > 22 * d->font;
	d->has_note = c->note && d->height > 26 * d->font;
	if (!has_legend_room(d))
		d->legend_rows = 0;
	double top = d->font * (d->has_titles ? 4.7 : 2.8);
	double bottom = (d->has_titles ? 2 : 1) * line + 0.8 * d->font + legend_height(d) +
			(d->has_note ? line : 0);
	double height = MAX(d->height - top - bottom, 10),
	       headroom = 1 - MIN(HEADROOM * d->font / height, 0.5);

	d->plot.height = height;
	d->y = (struct axis){c->y.kind, c->y.max / headroom};
	d->right = (struct axis){c->right.kind, c->right.max * RIGHT_ROOM / headroom};
	chart_set_font(d, 1, false);
	double left = d->font + label_width(d, &d->y) + 0.6 * d->font;
	double right = c->has_right ? d->font + label_width(d, &d->right) + 0.6 * d->font :
				      2 * d->font;

	d->plot = (struct chart_box){left, top, MAX(d->width - left - right, 10), height};
	d->legend_y = d->plot.y + d->plot.height + (d->has_titles ? 2 : 1) * line + 0.8 * d->font;
}

/*
 * Draws a chart after its layout, from back to front: background, areas and curves, axes, the peak,
 * title and legend.
 */

/* Conversion from values to pixels. */

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

/* Background: bands, grid, axes. */

static void draw_bands(const struct chart_drawing *d)
{
	chart_set_grey(d, 0.955);
	for (size_t i = 0; i + 1 < d->chart->band_count; i += 2) {
		double x = x_of(d, d->chart->band[i]);

		canvas_rectangle(d->canvas, x, d->plot.y, x_of(d, d->chart->band[i + 1]) - x,
				 d->plot.height);
		canvas_fill(d->canvas, 0);
	}
}

/* A line of one pixel, on the pixel grid. */
static void line(const struct chart_drawing *d, double x0, double y0, double x1, double y1)
{
	canvas_move_to(d->canvas, floor(x0) + 0.5, floor(y0) + 0.5);
	canvas_line_to(d->canvas, floor(x1) + 0.5, floor(y1) + 0.5);
	canvas_stroke(d->canvas, 1, 0);
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
		canvas_put_text(d->canvas, x, y + 0.35 * d->font, is_right ? 0 : 1, text);
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
		double half = canvas_text_width(d->canvas, text) / 2;

		canvas_put_text(d->canvas, MIN(x, d->width - half - 2), foot + 4 + 1.1 * d->font,
				0.5, text);
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
		canvas_put_text(d->canvas, d->font, above, 0, c->y_title);
	set_axis_color(d, true);
	if (c->has_right && c->right_title)
		canvas_put_text(d->canvas, d->width - d->font, above, 1, c->right_title);
	chart_set_grey(d, CHART_GREY);
	double below = d->plot.y + d->plot.height + 4 + 2.7 * d->font;

	if (c->x_title)
		canvas_put_text(d->canvas, d->plot.x + d->plot.width / 2, below, 0.5, c->x_title);
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

/* A single point is drawn as a bar, to be visible. */
static void draw_bar(const struct chart_drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);
	double width = 0.5 * d->font, high = y_of(d, axis, s->point[0].high);
	double x = MIN(MAX(x_of(d, s->point[0].x) - width / 2, d->plot.x),
		       d->plot.x + d->plot.width - width);

	canvas_rectangle(d->canvas, x, high, width, y_of(d, axis, s->point[0].low) - high);
	canvas_set_color(d->canvas, s->color);
	canvas_fill(d->canvas, 0);
}

/* The edge makes peaks narrower than a pixel visible. */
static void draw_area(const struct chart_drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);

	if (s->count == 1) {
		draw_bar(d, s);
		return;
	}
	for (size_t i = 0; i < s->count; i++)
		canvas_line_to(d->canvas, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].high));
	for (size_t i = s->count; i-- > 0;)
		canvas_line_to(d->canvas, x_of(d, s->point[i].x), y_of(d, axis, s->point[i].low));
	canvas_set_color(d->canvas, s->color);
	canvas_fill(d->canvas, 1);
}

/*
 * The points in one column of pixels, reduced to first, lowest, highest, last, which look the
 * same.
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
			canvas_line_to(d->canvas, c->x, y[i]);
		else
			canvas_move_to(d->canvas, c->x, y[i]);
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

static void draw_curve(const struct chart_drawing *d, const struct chart_series *s)
{
	const struct axis *axis = axis_of(d, s);
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
			if (s->style == CHART_STEPS || s->style == CHART_STEP_DASHES)
				canvas_line_to(d->canvas, x, last);
		}
		add_to_column(&column, x, y);
	}
	draw_column(d, &column, &is_down);
	canvas_set_color(d->canvas, s->color);
	canvas_stroke(d->canvas, d->font * 0.14, is_dashed(s) ? 6 : 0);
}

/* The complete legend text of a series. */
static char *title_of(const struct chart_series *s)
{
	return xasprintf("%s%s%s%s%s", s->label, s->detail ? " " : "", s->detail ? s->detail : "",
			 s->value ? ": " : "", s->value ? s->value : "");
}

static void draw_titled(const struct chart_drawing *d, const struct chart_series *s,
			void (*draw)(const struct chart_drawing *, const struct chart_series *))
{
	_cleanup_free_ char *title = title_of(s);

	canvas_begin_group(d->canvas, title);
	draw(d, s);
	canvas_end_group(d->canvas);
}

/* Areas from the first to the last, curves from the last to the first, dashed ones on top. */
static void draw_series(const struct chart_drawing *d)
{
	canvas_clip(d->canvas, d->plot.x, d->plot.y, d->plot.width + 1, d->plot.height + 1);
	for (size_t i = 0; i < d->chart->series_count; i++)
		if (d->chart->series[i].style == CHART_AREA)
			draw_titled(d, &d->chart->series[i], draw_area);
	for (int dashes = 0; dashes < 2; dashes++)
		for (size_t i = d->chart->series_count; i-- > 0;) {
			const struct chart_series *s = &d->chart->series[i];

			if (s->style != CHART_AREA && is_dashed(s) == (bool)dashes)
				draw_titled(d, s, draw_curve);
		}
	canvas_unclip(d->canvas);
}

static void draw_peak(const struct chart_drawing *d)
{
	const struct chart *c = d->chart;

	if (!c->has_peak)
		return;
	double x = x_of(d, c->peak_x), y = y_of(d, &d->y, c->peak_y), radius = d->font * 0.33;

	canvas_begin_group(d->canvas, c->peak_label);
	chart_set_grey(d, 0.1);
	chart_set_font(d, 1, true);
	double half = canvas_text_width(d->canvas, c->peak_label) / 2;
	double left = d->plot.x + 3, right = d->plot.x + d->plot.width - 3;
	double middle = MAX(MIN(x, right - half), left + half),
	       base = MAX(y - 0.8 * d->font, d->plot.y + d->font);

	if (2 * half <= right - left)
		canvas_put_halo_text(d->canvas, middle, base, 0.5, c->peak_label);
	canvas_disc(d->canvas, x, y, radius, d->font * 0.15);
	canvas_end_group(d->canvas);
}

/* Title and legend. */

static void draw_title(const struct chart_drawing *d)
{
	chart_set_font(d, 1.35, true);
	_cleanup_free_ char *title = chart_fit(d, d->chart->title, d->width - 2 * d->font, false);

	chart_set_grey(d, 0.1);
	canvas_put_text(d->canvas, d->width / 2, 2 * d->font, 0.5, title);
}

static void draw_swatch(const struct chart_drawing *d, const struct chart_series *s, double x,
			double y)
{
	double size = d->font * 0.85;

	canvas_set_color(d->canvas, s->color);
	if (s->style == CHART_AREA) {
		canvas_rectangle(d->canvas, x, y - size, size, size);
		canvas_fill(d->canvas, 0);
		return;
	}
	canvas_move_to(d->canvas, x - 0.1 * d->font, y - size / 2);
	canvas_line_to(d->canvas, x + size + 0.1 * d->font, y - size / 2);
	canvas_stroke(d->canvas, d->font * 0.2, is_dashed(s) ? 4 : 0);
}

#define LEAST_NAME 3 /* font sizes: a shorter one is not worth its room */

/* Name and detail in @room: the name is shortened. If both do not fit, a source line is kept. */
static char *fit_label(const struct chart_drawing *d, const struct chart_series *s, double room)
{
	bool is_name = !strstr(s->label, " \u2190 "); /* otherwise several */

	if (!s->detail)
		return chart_fit(d, s->label, room, is_name);
	_cleanup_free_ char *detail = xasprintf(" %s", s->detail);
	double left = room - canvas_text_width(d->canvas, detail);

	bool is_short = left < MIN(LEAST_NAME * d->font, canvas_text_width(d->canvas, s->label));

	_cleanup_free_ char *line = is_short ? source_line(s->detail) : NULL;

	if (line && canvas_text_width(d->canvas, line) <= room)
		return_ptr(line);
	if (is_short)
		return chart_fit(d, s->label, room, is_name);
	_cleanup_free_ char *name = chart_fit(d, s->label, left, is_name);

	return xasprintf("%s%s", name, detail);
}

/* Text of entry @i in @room. Names made equal by shortening get numbers. */
static char *entry_label(const struct chart_drawing *d, size_t i, double room)
{
	char *label = fit_label(d, &d->chart->series[i], room);
	unsigned number = 1, count = 1;

	for (size_t j = 0; j < d->chart->series_count; j++) {
		_cleanup_free_ char *other = fit_label(d, &d->chart->series[j], room);

		if (j == i || strcmp(label, other) != 0)
			continue;
		count++;
		number += j < i;
	}
	if (count == 1)
		return label;
	_cleanup_free_ char *suffix = xasprintf(" #%u", number);
	_cleanup_free_ char *first = label;
	_cleanup_free_ char *cut =
		chart_fit(d, first, room - canvas_text_width(d->canvas, suffix), false);

	return xasprintf("%s%s", cut, suffix);
}

static void draw_entry(const struct chart_drawing *d, size_t i)
{
	const struct chart_series *s = &d->chart->series[i];
	double column = column_width(d);
	double x = d->font + (double)(i / d->legend_rows) * (column + LEGEND_GAP * d->font);
	double y = d->legend_y + (double)(i % d->legend_rows + 1) * 1.5 * d->font;
	_cleanup_free_ char *label = entry_label(d, i, label_room(d, s));

	draw_swatch(d, s, x, y);
	chart_set_grey(d, 0.1);
	canvas_put_text(d->canvas, x + SWATCH_ROOM * d->font, y, 0, label);
	if (s->value)
		canvas_put_text(d->canvas, x + column, y, 1, s->value);
}

static void draw_legend(const struct chart_drawing *d)
{
	chart_set_font(d, 1, false);
	for (size_t i = 0; d->legend_rows && i < d->chart->series_count; i++) {
		_cleanup_free_ char *title = title_of(&d->chart->series[i]);

		canvas_begin_group(d->canvas, title);
		draw_entry(d, i);
		canvas_end_group(d->canvas);
	}
}

static void draw_note(const struct chart_drawing *d)
{
	if (!d->has_note)
		return;
	chart_set_font(d, 0.9, false);
	_cleanup_free_ char *note = chart_fit(d, d->chart->note, d->width - 2 * d->font, false);

	chart_set_grey(d, CHART_GREY);
	canvas_put_text(d->canvas, d->font, d->height - 0.7 * d->font, 0, note);
}

void chart_draw(const struct chart *c, struct canvas *canvas, double width, double height)
{
	struct chart_drawing d = {
		.chart = c,
		.canvas = canvas,
		.width = width,
		.height = height,
	};

	canvas_set_color(canvas, (struct canvas_color){1, 1, 1});
	canvas_rectangle(canvas, 0, 0, width, height);
	canvas_fill(canvas, 0);
	chart_measure(&d);
	draw_bands(&d);
	draw_y_grid(&d);
	draw_series(&d);
	draw_axes(&d);
	draw_peak(&d);
	draw_title(&d);
	draw_legend(&d);
	draw_note(&d);
}
