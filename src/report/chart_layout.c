/*
 * Layout of a chart: texts take the room they need, the plot gets the rest. Parts that would make
 * the plot too small are dropped: axis titles, the note, the legend.
 */
#include <math.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "report/chart_layout.h"

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

void chart_set_dark(const struct chart_drawing *d, struct canvas_color c)
{
	canvas_set_color(d->canvas,
			 (struct canvas_color){c.red * 0.8, c.green * 0.8, c.blue * 0.8});
}

/* Layout. */

unsigned chart_y_ticks(const struct chart_drawing *d)
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

static void measure_legend(struct chart_drawing *d)
{
	size_t n = d->chart->series_count;

	d->legend_columns = d->width >= 112 * d->font ? 3 : d->width >= 40 * d->font ? 2 : 1;
	d->legend_rows = (unsigned)((n + d->legend_columns - 1) / d->legend_columns);
}

static double legend_height(const struct chart_drawing *d)
{
	return d->legend_rows ? (d->legend_rows + 0.6) * d->font * 1.5 : 0;
}

void chart_measure(struct chart_drawing *d)
{
	const struct chart *c = d->chart;
	double scale = sqrt(MIN(d->width / BASE_WIDTH, d->height / BASE_HEIGHT));

	d->font = 12 * MIN(MAX(scale, 0.75), 3);
	double line = d->font * 1.5;

	measure_legend(d);
	d->has_titles = d->height > 22 * d->font;
	d->has_note = c->note && d->height > 26 * d->font;
	if (d->height - legend_height(d) < MAX(18 * d->font, 0.55 * d->height))
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
