/*
 * Growth by call site, as text: the differences of two trees, the largest growth first, each site
 * with its callers.
 */
#ifndef PTMEM_REPORT_DIFF_H
#define PTMEM_REPORT_DIFF_H

#include <stdio.h>

#include "output/path_tree.h"

struct diff_options {
	unsigned top;      /* at most so many rows below one another's caller */
	const char *error_heading; /* of a column with standard errors; NULL: there is none */
	double threshold;  /* percent of the largest difference: what is less is summed up */
};

/* Prints @t, whose paths begin at the call sites. The caller checks the stream for errors. */
void diff_print(FILE *out, const struct path_tree *t, const struct diff_options *options);

#endif
