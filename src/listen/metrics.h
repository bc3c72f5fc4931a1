/* /metrics: the text format of Prometheus, and OpenMetrics, which differs in little. */
#ifndef PTMEM_LISTEN_METRICS_H
#define PTMEM_LISTEN_METRICS_H

#include <stdio.h>

#include "listen/served.h"

/* @ptmem: the pid of ptmem, whose own cost is in them. Errors of the stream are left in it. */
void metrics_write(FILE *out, const struct served_table *t, uint32_t ptmem, bool is_openmetrics);

#endif
