/* /metrics in the text format of Prometheus, or OpenMetrics, which differs slightly. */
#ifndef PTMEM_LISTEN_METRICS_H
#define PTMEM_LISTEN_METRICS_H

#include <stdio.h>

#include "listen/served.h"

/* To be called while ptmem, process @ptmem, runs: its CPU time counts after its end, too. */
void metrics_note_cpu(struct served_table *t, uint32_t ptmem);

/*
 * For the server. @ptmem: ptmem's pid; the cost of both is included. The caller checks the stream
 * for errors.
 */
void metrics_write(FILE *out, const struct served_table *t, uint32_t ptmem, bool is_openmetrics);

#endif
