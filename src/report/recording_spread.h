/* How the blocks of a recording are spread over threads, sizes and lifetimes, as text. */
#ifndef PTMEM_REPORT_RECORDING_SPREAD_H
#define PTMEM_REPORT_RECORDING_SPREAD_H

#include <stdio.h>

#include "recording/recording.h"

/*
 * A table of threads, @top rows at most, and one each of all sizes and lifetimes. Those without a
 * row are left out. Errors of the stream are left in it.
 */
void recording_spread_print(FILE *out, const struct recording *r, unsigned top);

#endif
