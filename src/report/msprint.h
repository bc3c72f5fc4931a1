/*
 * The text report: what ms_print prints, byte for byte (spec/massif.md section 4).
 */
#ifndef PTMEM_REPORT_MSPRINT_H
#define PTMEM_REPORT_MSPRINT_H

#include <stdio.h>

#include "report/massif_file.h"

#define MSPRINT_SIZE_MIN 4
#define MSPRINT_SIZE_MAX 1000

struct msprint_options {
	double threshold;      /* percent, 0 .. 100 */
	unsigned width, height; /* of the graph, MSPRINT_SIZE_MIN .. MSPRINT_SIZE_MAX */
	const char *arguments; /* those of the command line, a blank before each */
};

/*
 * Writes the report to @out. -EINVAL with *@why_out (the caller frees it) for what
 * ms_print gives up on after its header: no snapshot, an unknown time unit. Errors
 * of the stream are left in it.
 */
int msprint(FILE *out, const struct massif_file *file, const struct msprint_options *options,
	    char **why_out);

#endif
