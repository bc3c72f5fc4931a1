/* Call paths of a view as a file for speedscope: one sampled profile, weights in bytes. */
#ifndef PTMEM_REPORT_RECORDING_SPEEDSCOPE_H
#define PTMEM_REPORT_RECORDING_SPEEDSCOPE_H

#include <stdio.h>

#include "recording/recording_view.h"

/* @name: description of the values. The caller checks the stream for errors. */
void recording_speedscope_write(FILE *out, const struct recording *r,
				const struct recording_view *v, const char *name);

#endif
