/* The reports of ptmem-report about two profiles (--diff). */
#ifndef PTMEM_REPORT_DIFF_SHOW_H
#define PTMEM_REPORT_DIFF_SHOW_H

#include "report/input.h"
#include "report/show.h"

/*
 * Makes the reports requested by @r from @input, an old and a new profile with call trees. 0, or an
 * enum report_exit after the error was logged.
 */
int diff_show(const struct report_request *r, const struct input *input);

#endif
