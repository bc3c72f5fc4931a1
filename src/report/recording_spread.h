/* How the blocks of a recording are spread over threads, sizes and lifetimes, as text. */
#ifndef PTMEM_REPORT_RECORDING_SPREAD_H
#define PTMEM_REPORT_RECORDING_SPREAD_H

#include <stdio.h>

#include "recording/recording.h"

/* Which rows of a sorted table are shown; the others are one row. */
struct row_limits {
	unsigned top;     /* the first ones, at most so many */
	double threshold; /* of them those with this percentage of the sum at least */
};

/* Whether row @i, of @part of @all, is shown. */
bool row_limits_allow(const struct row_limits *limits, size_t i, uint64_t part, uint64_t all);

/*
 * A table of threads, with @limits, and one each of all sizes and lifetimes. Those without a row
 * are left out. Errors of the stream are left in it.
 */
void recording_spread_print(FILE *out, const struct recording *r, const struct row_limits *limits);

#endif
