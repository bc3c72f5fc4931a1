/*
 * The HTML report of one profile, or of two that are compared.
 */
#ifndef PTMEM_REPORT_HTML_REPORT_H
#define PTMEM_REPORT_HTML_REPORT_H

#include "report/input.h"
#include "report/show.h"

/*
 * Writes the page of @input, a profile with call trees or what --inspect found, or with is_diff of
 * the old and the new one, which are of one kind. 0, or an enum report_exit once the error is
 * logged.
 */
int html_report_write(const struct report_request *r, const struct input *input);

#endif
