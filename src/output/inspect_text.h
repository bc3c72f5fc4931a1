/* --inspect as text. */
#ifndef PTMEM_OUTPUT_INSPECT_TEXT_H
#define PTMEM_OUTPUT_INSPECT_TEXT_H

#include "output/inspect_report.h"

void inspect_report_print(FILE *file, const struct inspect_title *t,
			  const struct inspect_report *r);

/*
 * Prints the lines that explain why blocks may be missing, or counted although free; none if there
 * is no problem.
 */
void inspect_report_print_doubts(FILE *file, const struct inspect_title *t,
				 const struct inspect_report *r);

#endif
