/* Whether what is asked for makes sense: options that fit each other, and files that differ. */
#ifndef PTMEM_REPORT_REQUEST_CHECK_H
#define PTMEM_REPORT_REQUEST_CHECK_H

#include "report/show.h"

/* Option @name ("--top") was given. */
void request_note(struct report_request *r, const char *name);

/* Why @r makes no sense; NULL if it does. The caller frees it. */
char *request_check(const struct report_request *r);
/* Whether a report goes to standard output, as --format says or by default. */
bool request_prints(const struct report_request *r);
/* As request_check, once it is known what the files are. */
char *request_check_input(const struct report_request *r, enum input_kind kind);

#endif
