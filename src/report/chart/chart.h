/*
 * A chart: curves and stacked areas over a common x axis, with a legend. Uses a canvas; independent
 * of the files that its numbers come from.
 *
 *	title
 *	  y |            o peak 11.3 MiB at 2.1 s       | right y
 *	    |  areas, curves                            |
 *	    +-------'-----'------ x -------------'------+    ' = marks
 *	  [] label  value      [] label  value
 *	  note
 *
 * All texts are valid UTF-8.
 */
#ifndef PTMEM_REPORT_CHART_CHART_H
#define PTMEM_REPORT_CHART_CHART_H

#include "report/chart/axis.h"
#include "report/chart/canvas.h"

/* Colours that colour-blind people can distinguish (Okabe and Ito 2008). */
#define CHART_BLUE ((struct canvas_color){0.00, 0.45, 0.70})
#define CHART_VERMILLION ((struct canvas_color){0.84, 0.37, 0.00})
#define CHART_GREEN ((struct canvas_color){0.00, 0.62, 0.45})
#define CHART_BLACK ((struct canvas_color){0.10, 0.10, 0.10})

#define CHART_PALETTE_SIZE 7
struct canvas_color chart_palette(size_t i); /* i is taken modulo CHART_PALETTE_SIZE */

enum chart_style { CHART_AREA, CHART_LINE, CHART_STEPS, CHART_DASHES, CHART_STEP_DASHES };

struct chart_point {
	double x, low, high; /* low: only for areas. A high of NAN interrupts the curve */
};

struct chart_series {
	char *label, *detail, *value; /* of the legend; owned; all but the label may be NULL */
	struct canvas_color color;
	enum chart_style style;
	bool is_right;         /* uses the right axis */
	struct chart_point *point; /* ascending in x, but curves may go back a little; owned */
	size_t count, capacity;
};

struct chart {
	char *title;           /* owned, like all texts */
	char *x_title, *y_title, *right_title; /* NULL = none */
	char *note;            /* NULL = none */
	struct axis x, y, right; /* y, right: up to the highest value; drawing adds room above */
	bool has_right;
	struct chart_series *series;
	size_t series_count, series_capacity;
	bool has_peak;
	double peak_x, peak_y;
	char *peak_label;
	double *band;          /* borders of bands, ascending in x: every second band is shaded */
	size_t band_count, band_capacity;
	double *mark;          /* ticks on the inner side of the x axis */
	size_t mark_count, mark_capacity;
};

/* Appends a new series, valid until the next one is added. Takes ownership of @label. */
struct chart_series *chart_add(struct chart *c, char *label, enum chart_style style,
			       struct canvas_color color);
void chart_add_point(struct chart_series *s, double x, double low, double high);
void chart_add_band(struct chart *c, double x);
void chart_add_mark(struct chart *c, double x);

void chart_deinit(struct chart *c);

/* The layout of a chart, used by chart.c. */

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

/* @scale: relative to normal text. */
void chart_set_font(const struct chart_drawing *d, double scale, bool is_bold);

/*
 * @text shortened to a width of at most @room, as a function name or at its end. The caller frees
 * it.
 */
char *chart_fit(const struct chart_drawing *d, const char *text, double room, bool is_name);

void chart_set_grey(const struct chart_drawing *d, double level);

/* Draws a chart. */

/* Draws on a white background of @width times @height. Parts that do not fit are left out. */
void chart_draw(const struct chart *c, struct canvas *canvas, double width, double height);

#endif
