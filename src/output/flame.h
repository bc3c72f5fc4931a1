/*
 * Flame graphs: one self-contained SVG file. Callers are below their callees, widths are values.
 *
 * Without scripts (printed, or as a picture) it is complete, except that names are cut to fit their
 * frames; title elements contain the full names. Its script (flame.js) adds zoom, search, a line of
 * details, and adapts to the window's width.
 */
#ifndef PTMEM_OUTPUT_FLAME_H
#define PTMEM_OUTPUT_FLAME_H

#include <stdio.h>

#include "output/path_tree.h"

#define FLAME_WIDTH_DEFAULT 1200
#define FLAME_WIDTH_MIN 300
#define FLAME_WIDTH_MAX 20000
#define FLAME_MIN_FRAME 0.1 /* pixels */

struct flame_options {
	const char *title;
	const char *subtitle;  /* NULL = none */
	const char *unit;      /* "bytes", "pages", "count": the unit of values */
	unsigned width;        /* of the picture in pixels, FLAME_WIDTH_MIN .. FLAME_WIDTH_MAX */
	bool is_fixed;         /* of that width in every window; else a browser fits it */
	double min_frame;      /* frames narrower than this many pixels are left out */
	bool is_diff;          /* widths by the larger of old and new, colours by new - old */
};

/*
 * Writes the SVG of @t, whose totals must be up to date. The caller checks the stream for
 * errors.
 */
void flame_write(FILE *out, const struct path_tree *t, const struct flame_options *options);

#endif
