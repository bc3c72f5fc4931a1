/* What ptmem-report makes of two profiles (--diff). */
#ifndef PTMEM_REPORT_DIFF_SHOW_H
#define PTMEM_REPORT_DIFF_SHOW_H

#include "report/input.h"
#include "report/show.h"

/*
 * Makes the reports that @r asks for of @input, an old and a new profile with call trees. 0, or an
 * enum report_exit once the error is logged.
 */
int diff_show(const struct report_request *r, const struct input *input);

#endif
