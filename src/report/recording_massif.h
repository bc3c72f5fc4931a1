/* A recording as a massif.out file, for ms_print and other readers of that
 * format. */
#ifndef PTMEM_REPORT_RECORDING_MASSIF_H
#define PTMEM_REPORT_RECORDING_MASSIF_H

#include <stdio.h>

#include "recording/recording.h"

struct recording_massif_options {
	double threshold;  /* percent of a snapshot; call paths with less are summed up */
	const char *match; /* the paths that match alone; NULL = all */
};

/*
 * A snapshot at the end of each interval, each tenth and the last with its call
 * tree, and one of the peak. -EINVAL and *@why_out, which the caller frees, if
 * the expression is wrong. Errors of the stream are left in it.
 */
int recording_massif_write(FILE *out, const struct recording *r,
			   const struct recording_massif_options *options, char **why_out);

#endif
