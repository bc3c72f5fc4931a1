/*
 * The HTML report of one profile, or of two that are compared.
 */
#ifndef PTMEM_REPORT_HTML_REPORT_H
#define PTMEM_REPORT_HTML_REPORT_H

#include <stdio.h>

#include "report/input.h"
#include "report/recording_view.h"

/*
 * @old: NULL, or what @input is compared with; both have call trees. Errors of the stream are left
 * in @out. The page opens with what is asked; -EINVAL and *@why_out, which the caller frees, if
 * that makes no sense.
 */
int html_report_write(FILE *out, const struct input *input, const struct input *old,
		      const struct recording_question *q, char **why_out);

#endif
