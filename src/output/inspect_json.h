/* --inspect as JSON. */
#ifndef PTMEM_OUTPUT_INSPECT_JSON_H
#define PTMEM_OUTPUT_INSPECT_JSON_H

#include "output/inspect_report.h"

/*
 * One object. Sizes are in bytes; "resident" and "swapped" of rows add up to those of "memory".
 * Pages are those that are resident or swapped out; of a core file, those in it that are not all
 * zeros.
 */
void inspect_report_write_json(FILE *file, const struct inspect_title *t,
			       const struct inspect_report *r);

#endif
