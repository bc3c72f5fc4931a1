/* --inspect as text for people. */
#ifndef PTMEM_OUTPUT_INSPECT_TEXT_H
#define PTMEM_OUTPUT_INSPECT_TEXT_H

#include "output/inspect_report.h"

void inspect_report_print(FILE *file, const struct inspect_title *t,
			  const struct inspect_report *r);

#endif
