/*
 * Flame graphs: one SVG file with everything inside, made to be opened from a
 * disk years later. Callers are below what they call, widths are values.
 *
 * Without scripts (printed, or shown as a picture) it is complete, but for names
 * that are cut to their frames; title elements hold the whole names. Its own
 * script (flame.js) adds zoom, search, the line of details, and the window's width.
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
	const char *unit;      /* "bytes", "pages", "count": what the values are */
	unsigned width;        /* of the picture in pixels, FLAME_WIDTH_MIN .. FLAME_WIDTH_MAX */
	bool is_fixed;         /* of that width in every window; else a browser fits it */
	double min_frame;      /* frames narrower than this many pixels are left out */
	/* by enum path_side: values are estimates from samples so far apart, bytes; 0: exact */
	uint64_t sample_interval[2];
	bool is_diff;          /* widths by the larger of old and new, colours by new - old */
};

/* Writes the SVG of @t, whose totals are up to date. Errors of the stream are left in it. */
void flame_write(FILE *out, const struct path_tree *t, const struct flame_options *options);

#endif
