/* A recording as text for a terminal: what holds the memory, what remains, what is churn. */
#ifndef PTMEM_REPORT_RECORDING_TEXT_H
#define PTMEM_REPORT_RECORDING_TEXT_H

#include <stdio.h>

#include "recording/recording_view.h"
#include "report/recording_spread.h"

/* Errors of the stream are left in it. */
int recording_text_print(FILE *out, const struct recording *r, const struct recording_question *q,
			 const struct row_limits *limits, char **why_out);

#endif
