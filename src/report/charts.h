/*
 * One chart for each kind of file. Each fills the zeroed chart @c, which the
 * caller lets go of, also on failure: -EINVAL with *@why_out (the caller frees it)
 * where there is nothing to draw.
 */
#ifndef PTMEM_REPORT_CHARTS_H
#define PTMEM_REPORT_CHARTS_H

#include "report/chart.h"
#include "report/picture.h"

int massif_chart(const struct massif_file *file, const struct picture_options *o, struct chart *c,
		 char **why_out);
int samples_chart(const struct samples_file *file, const struct picture_options *o, struct chart *c,
		  char **why_out);

/* The same, of any file. */
void memusage_chart(const struct memusage_file *file, const struct picture_options *o,
		    struct chart *c);

/*
 * Adds the resident memory of the first process of @file as
 * a curve; x in milliseconds. Returns its largest value.
 */
double samples_chart_add_rss(const struct samples_file *file, struct chart *c);

#endif
