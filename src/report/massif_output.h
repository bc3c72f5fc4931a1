/*
 * A massif file as text, byte for byte what ms_print prints (doc/massif.md section 4), and as JSON
 * for the page (output/html_page.h).
 */
#ifndef PTMEM_REPORT_MASSIF_OUTPUT_H
#define PTMEM_REPORT_MASSIF_OUTPUT_H

#include <stdio.h>

#include "report/massif_file.h"

#define MSPRINT_SIZE_MIN 4
#define MSPRINT_SIZE_MAX 1000

struct msprint_options {
	double threshold;      /* percent, 0 .. 100 */
	unsigned width, height; /* of the graph, MSPRINT_SIZE_MIN .. MSPRINT_SIZE_MAX */
	const char *arguments; /* those of the command line, each after a space */
};

/*
 * Writes the report to @out. -EINVAL with *@why_out (the caller frees it) for errors that end
 * ms_print after its header: no snapshot, an unknown time unit. The caller checks the stream for
 * errors.
 */
int msprint(FILE *out, const struct massif_file *file, const struct msprint_options *options,
	    char **why_out);

/*
 * A massif file as JSON for the page (output/html_page.h): frames and nodes as in doc/format.md,
 * the totals of its snapshots as timeline, and instead of cells "states", the values of leaves at
 * the snapshots with a tree.
 */

/* Writes the object. The caller checks the stream for errors. */
void massif_json_write(FILE *out, struct massif_file *file);

#endif
