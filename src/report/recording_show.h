/* The reports of ptmem-report about recordings. */
#ifndef PTMEM_REPORT_RECORDING_SHOW_H
#define PTMEM_REPORT_RECORDING_SHOW_H

#include "recording/recording_view.h"
#include "report/show.h"

/* Makes the reports that @r requests: 0, or an enum report_exit once the error is logged. */
int recording_show(const struct report_request *r, const struct recording *recording);

#endif
