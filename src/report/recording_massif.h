/* A recording as a massif.out file, for ms_print and other readers of that format. */
#ifndef PTMEM_REPORT_RECORDING_MASSIF_H
#define PTMEM_REPORT_RECORDING_MASSIF_H

#include <stdio.h>

#include "recording/recording_view.h"

/*
 * A snapshot at the end of each interval, each tenth and the last with its call tree, and one of
 * the peak; or of @view alone, if it is not NULL. @threshold: percent of a snapshot; call paths
 * with less are summed up. Errors of the stream are left in it.
 */
void recording_massif_write(FILE *out, const struct recording *r,
			    const struct recording_view *view, double threshold);

#endif
