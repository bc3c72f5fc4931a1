/*
 * The chart of a file of samples. Fills the zeroed @c, which the caller releases, also on failure:
 * -EINVAL with *@why_out (the caller frees it) where there is nothing to draw.
 */
#ifndef PTMEM_REPORT_SAMPLES_CHART_H
#define PTMEM_REPORT_SAMPLES_CHART_H

#include "report/chart.h"
#include "report/picture.h"

int samples_chart(const struct samples_file *file, const struct picture_options *o, struct chart *c,
		  char **why_out);

/* Adds the resident memory of process @pid as a curve; x in milliseconds. Returns its maximum. */
double samples_chart_add_rss(const struct samples_file *file, uint32_t pid, struct chart *c);

#endif
