/* A Go program's heap profile, read by --inspect, as pprof's gzipped protocol buffer. */
#ifndef PTMEM_RECORDING_GO_PPROF_H
#define PTMEM_RECORDING_GO_PPROF_H

#include <stdio.h>

#include "output/inspect_go.h"

/* The types of samples are as in recording_pprof.h. The caller checks the stream for errors. */
void go_pprof_write(FILE *out, const struct inspect_go *g);

#endif
