/*
 * How long the blocks of each call site of a recording lived, as text: the mean of those that were
 * released, the share of those that were not, and how old these are.
 */
#ifndef PTMEM_REPORT_RECORDING_LIFETIME_H
#define PTMEM_REPORT_RECORDING_LIFETIME_H

#include "report/recording_spread.h"

/* Prints nothing if no block is known. Errors of the stream are left in it. */
void recording_lifetime_print(FILE *out, const struct recording *r,
			      const struct row_limits *limits);

#endif
