/* A canvas that is an SVG file. */
#ifndef PTMEM_REPORT_CANVAS_SVG_H
#define PTMEM_REPORT_CANVAS_SVG_H

#include <stdio.h>

struct canvas;

/*
 * Writes a document of @width times @height to @out. The caller checks the stream for errors. Never
 * NULL.
 */
struct canvas *canvas_new_svg(FILE *out, double width, double height);

#endif
