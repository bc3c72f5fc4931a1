/*
 * Growth by call site, as text: what two trees differ by, the largest growth first,
 * each site with the callers that brought it.
 */
#ifndef PTMEM_REPORT_DIFF_H
#define PTMEM_REPORT_DIFF_H

#include <stdio.h>

#include "output/path_tree.h"

struct diff_options {
	unsigned top;      /* at most so many rows below one another's caller */
	/* by enum path_side: bytes are estimates from samples so far apart; 0: they are exact */
	uint64_t interval[2];
	double threshold;  /* percent of the largest difference: what is less is summed up */
};

/* Prints @t, whose paths begin at the call sites. Errors of the stream are left in it. */
void diff_print(FILE *out, const struct path_tree *t, const struct diff_options *options);

#endif
