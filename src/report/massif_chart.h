/*
 * The chart of a massif file. Fills the zeroed @c, which the caller releases, also on failure:
 * -EINVAL with *@why_out (the caller frees it) if there is nothing to draw.
 */
#ifndef PTMEM_REPORT_MASSIF_CHART_H
#define PTMEM_REPORT_MASSIF_CHART_H

#include "report/chart.h"
#include "report/picture.h"

int massif_chart(const struct massif_file *file, const struct picture_options *o, struct chart *c,
		 char **why_out);

#endif
