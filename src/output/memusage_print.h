/*
 * memusage's report as text; doc/memusage.md section 1.
 */
#ifndef PTMEM_OUTPUT_MEMUSAGE_PRINT_H
#define PTMEM_OUTPUT_MEMUSAGE_PRINT_H

#include <stdio.h>

#include "profile/memusage.h"

/* Prints the report, which starts with an empty line. 0 or -errno. */
int memusage_print(FILE *file, const struct memusage_numbers *n, bool with_mappings,
		   bool use_color);

#endif
