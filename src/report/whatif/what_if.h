/* What resident memory would be with other allocators (--what-if): the report. */
#ifndef PTMEM_REPORT_WHATIF_WHAT_IF_H
#define PTMEM_REPORT_WHATIF_WHAT_IF_H

#include "report/show.h"

/* Why @r makes no sense with --what-if: NULL, or a text that the caller frees. */
char *what_if_check(const struct report_request *r);

/* Replays, and prints: 0, or an enum report_exit once the error is logged. */
int what_if_show(const struct report_request *r);

#endif
