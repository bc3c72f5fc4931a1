/*
 * Draws the paths, texts and groups of charts on a cairo surface (PNG) or into an SVG file. Text in
 * SVG files stays text, which can be selected, searched and read aloud, and groups have titles,
 * which browsers show as tooltips.
 *
 * Colour and font stay in effect until changed. Texts are valid UTF-8.
 */
#ifndef PTMEM_REPORT_CHART_CANVAS_H
#define PTMEM_REPORT_CHART_CANVAS_H

#include <cairo.h>
#include <stdio.h>

#include "base/types.h"

struct canvas_color {
	double red, green, blue;
};

struct canvas;

/* Draws on @cr, which must outlive the canvas. Never NULL. */
struct canvas *canvas_new_cairo(cairo_t *cr);

/* Ends the document. */
void canvas_free(struct canvas *c);

/* Scales everything drawn from here on by the factor @scale. Call it first. */
void canvas_scale(struct canvas *c, double scale);

void canvas_set_color(struct canvas *c, struct canvas_color color);
void canvas_set_font(struct canvas *c, double size, bool is_bold);

double canvas_text_width(const struct canvas *c, const char *text);

/* @anchor: 0 = @x is the left end, 0.5 = the middle, 1 = the right end. */
void canvas_put_text(struct canvas *c, double x, double y, double anchor, const char *text);

/* The same with a white outline, to be readable on any background. */
void canvas_put_halo_text(struct canvas *c, double x, double y, double anchor, const char *text);

/* Builds a path; drawing it ends it. */
void canvas_move_to(struct canvas *c, double x, double y);
void canvas_line_to(struct canvas *c, double x, double y);
void canvas_rectangle(struct canvas *c, double x, double y, double width, double height);

/* Fills the path, with an edge of @edge pixels in the same colour, half of it outside. */
void canvas_fill(struct canvas *c, double edge);

/* Strokes the path. @dash: length of a dash; 0 = a solid line. */
void canvas_stroke(struct canvas *c, double width, double dash);

/* A white disc with an outline. */
void canvas_disc(struct canvas *c, double x, double y, double radius, double width);

/* Clips to the rectangle until canvas_unclip. Not nested. */
void canvas_clip(struct canvas *c, double x, double y, double width, double height);
void canvas_unclip(struct canvas *c);

/* Everything drawn until canvas_end_group gets the title @title. */
void canvas_begin_group(struct canvas *c, const char *title);
void canvas_end_group(struct canvas *c);

/* A canvas that is an SVG file. */

/*
 * Writes a document of @width times @height to @out. The caller checks the stream for errors. Never
 * NULL.
 */
struct canvas *canvas_new_svg(FILE *out, double width, double height);

#endif
