/*
 * The HTML report of one profile, or of two that are compared.
 */
#ifndef PTMEM_REPORT_HTML_REPORT_H
#define PTMEM_REPORT_HTML_REPORT_H

#include "report/input.h"
#include "report/show.h"

/*
 * Writes the page for @input: a profile with call trees, or --inspect's results, or with is_diff an
 * old and a new profile of the same kind. 0, or an enum report_exit after the error was logged.
 */
int html_report_write(const struct report_request *r, const struct input *input);

#endif
