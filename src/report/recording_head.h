/* The beginning of the text of a recording: what was profiled, and its totals. */
#ifndef PTMEM_REPORT_RECORDING_HEAD_H
#define PTMEM_REPORT_RECORDING_HEAD_H

#include <stdio.h>

#include "base/amount.h"
#include "recording/recording_view.h"

void recording_head_print(FILE *out, const struct recording *r);

/* The standard error of @value: "" if it is exact. */
const char *recording_error_text(const struct recording *r, const struct recording_value *value,
				 char out[static AMOUNT_SIZE]);
/*
 * "1,234 bytes in 56 blocks", or "1.2 MiB +- 10 % in about 56 blocks", where @unit is "block"; the
 * caller frees it.
 */
char *recording_value_text(const struct recording *r, const struct recording_value *value,
			   const char *unit);

#endif
