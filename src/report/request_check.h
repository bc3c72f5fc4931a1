/* Checks of a request: compatible options, and different output files. */
#ifndef PTMEM_REPORT_REQUEST_CHECK_H
#define PTMEM_REPORT_REQUEST_CHECK_H

#include "report/show.h"

/* Option @name ("--top") was given. */
void request_note(struct report_request *r, const char *name);

/* Why @r makes no sense; NULL if it does. The caller frees it. */
char *request_check(const struct report_request *r);
/* Whether a report goes to standard output, by --format or by default. */
bool request_prints(const struct report_request *r);
/* As request_check, once it is known what the files are. */
char *request_check_input(const struct report_request *r, enum input_kind kind);

#endif
