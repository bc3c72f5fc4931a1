/*
 * The chart of memusage's data. Fills the zeroed @c, which the caller releases.
 */
#ifndef PTMEM_REPORT_MEMUSAGE_CHART_H
#define PTMEM_REPORT_MEMUSAGE_CHART_H

#include "report/chart.h"
#include "report/picture.h"

void memusage_chart(const struct memusage_file *file, const struct picture_options *o,
		    struct chart *c);

#endif
