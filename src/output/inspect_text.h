/* --inspect as text for people. */
#ifndef PTMEM_OUTPUT_INSPECT_TEXT_H
#define PTMEM_OUTPUT_INSPECT_TEXT_H

#include "output/inspect_report.h"

void inspect_report_print(FILE *file, const struct inspect_title *t,
			  const struct inspect_report *r);

/* Its lines that say why blocks may be missing, or counted that are free; none if all is well. */
void inspect_report_print_doubts(FILE *file, const struct inspect_title *t,
				 const struct inspect_report *r);

#endif
