/* Shared by the canvas and its two backends. */
#ifndef PTMEM_REPORT_CANVAS_INTERNAL_H
#define PTMEM_REPORT_CANVAS_INTERNAL_H

#include <stdio.h>

#include "report/canvas.h"

#define CANVAS_HALO 0.4 /* width of the outline around a text, in font sizes */
#define CANVAS_GAP 0.66 /* gap between dashes, as a fraction of their length */

struct canvas_point {
	double x, y;
	bool is_start;         /* of a part of the path */
};

struct canvas_text {
	double x, y, anchor;
	const char *text;
	bool has_halo;
};

struct canvas_disc {
	double x, y, radius, line_width;
};

struct canvas;

/* NULL: nothing to do. The path is in c->path. */
struct canvas_ops {
	void (*scale)(struct canvas *c, double scale);
	void (*put_text)(struct canvas *c, const struct canvas_text *text);
	void (*fill)(struct canvas *c, double edge);
	void (*stroke)(struct canvas *c, double width, double dash);
	void (*disc)(struct canvas *c, const struct canvas_disc *disc);
	void (*clip)(struct canvas *c, double x, double y, double width, double height);
	void (*unclip)(struct canvas *c);
	void (*begin_group)(struct canvas *c, const char *title);
	void (*end_group)(struct canvas *c);
	void (*end)(struct canvas *c);
};

struct canvas {
	const struct canvas_ops *ops;
	cairo_t *cr;           /* measures texts, and is drawn on; owned if it only measures */
	FILE *out;             /* SVG */
	double width, height;  /* SVG */
	bool is_begun;         /* SVG: the header is written */
	double font_size;
	bool is_bold;
	struct canvas_color color;
	struct { struct canvas_point *data; size_t count, capacity; } path;
};

#endif
