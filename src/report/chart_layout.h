/* The layout of a chart, used by chart_draw.c. */
#ifndef PTMEM_REPORT_CHART_LAYOUT_H
#define PTMEM_REPORT_CHART_LAYOUT_H

#include "report/chart.h"

#define CHART_GREY 0.40 /* of axes and their texts */

struct chart_box {
	double x, y, width, height;
};

struct chart_drawing {
	const struct chart *chart;
	struct axis y, right;  /* the chart's values, with headroom */
	struct canvas *canvas;
	double width, height;
	double font;           /* size of normal text, pixels */
	struct chart_box plot;
	unsigned legend_columns, legend_rows; /* rows 0 = no legend */
	double legend_y;
	bool has_titles, has_note;
};

/* Sets all of @d except chart, canvas, width, height. */
void chart_measure(struct chart_drawing *d);

/* @scale: relative to normal text. */
void chart_set_font(const struct chart_drawing *d, double scale, bool is_bold);

/*
 * @text shortened to a width of at most @room, as a function name or at its end. The caller frees
 * it.
 */
char *chart_fit(const struct chart_drawing *d, const char *text, double room, bool is_name);

void chart_set_grey(const struct chart_drawing *d, double level);
/* Darker than the curve it belongs to, to be readable as text. */
void chart_set_dark(const struct chart_drawing *d, struct canvas_color c);

/* The number of ticks that fit on a vertical axis. */
unsigned chart_y_ticks(const struct chart_drawing *d);

#endif
