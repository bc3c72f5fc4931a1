/*
 * The HTML report of one profile, or of two that are compared.
 */
#ifndef PTMEM_REPORT_HTML_REPORT_H
#define PTMEM_REPORT_HTML_REPORT_H

#include <stdio.h>

#include "report/input.h"

/* @old: NULL, or what @input is compared with; both have call trees. Errors are left in @out. */
void html_report_write(FILE *out, const struct input *input, const struct input *old);

#endif
