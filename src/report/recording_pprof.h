/*
 * A recording as pprof's gzipped protocol buffer (pprof_profile.proto): inuse_space and
 * inuse_objects are what is asked for, alloc_space and alloc_objects all that was ever allocated.
 */
#ifndef PTMEM_REPORT_RECORDING_PPROF_H
#define PTMEM_REPORT_RECORDING_PPROF_H

#include <stdio.h>

#include "report/recording_view.h"

/* @total: VIEW_TOTAL of the same call paths. Errors of the stream are left in it. */
void recording_pprof_write(FILE *out, const struct recording *r, const struct recording_view *v,
			   const struct recording_view *total);

#endif
