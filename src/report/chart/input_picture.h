/*
 * What is drawn of each kind of input: a chart of memory over time (samples, massif files,
 * memusage's data), or the picture of a heap (--inspect's results).
 */
#ifndef PTMEM_REPORT_CHART_INPUT_PICTURE_H
#define PTMEM_REPORT_CHART_INPUT_PICTURE_H

#include "report/chart/canvas.h"
#include "report/chart/chart.h"
#include "report/chart/picture.h"
#include "report/input.h"

/*
 * The chart of a file of samples. Fills the zeroed @c, which the caller releases, also on failure:
 * -EINVAL with *@why_out (the caller frees it) where there is nothing to draw.
 */

int samples_chart(const struct samples_file *file, const struct picture_options *o, struct chart *c,
		  char **why_out);

/* Adds the resident memory of process @pid as a curve; x in milliseconds. Returns its maximum. */
double samples_chart_add_rss(const struct samples_file *file, uint32_t pid, struct chart *c);

/*
 * The chart of a massif file. Fills the zeroed @c, which the caller releases, also on failure:
 * -EINVAL with *@why_out (the caller frees it) if there is nothing to draw.
 */

int massif_chart(const struct massif_file *file, const struct picture_options *o, struct chart *c,
		 char **why_out);

/* The same of a recording. */
int recording_chart(const struct recording *r, const struct picture_options *o, struct chart *c,
		    char **why_out);

/*
 * The chart of memusage's data. Fills the zeroed @c, which the caller releases.
 */

void memusage_chart(const struct memusage_file *file, const struct picture_options *o,
		    struct chart *c);

/*
 * The picture of --inspect's results:
 *
 *	title
 *	[ VmRSS                                             ]
 *	[ malloc                          ][ program ][ ... ]    a bar, down to its parts
 *	[ live     ][ free ][ free ][ ... ][    ][    ][    ]
 *	[] live heap blocks    12 MiB      [] ...
 *
 *	main arena: ...
 *	[][][][][][][][][][][][][][]    a cell per page, or per group of pages
 */

/* @title: NULL = the file's. On a white background of @width times @height. */
void inspect_picture_draw(const struct inspect_file *f, const char *title, struct canvas *canvas,
			  double width, double height);

#endif
