/* A recording as JSON, for the report and other tools: doc/format.md defines it. */
#ifndef PTMEM_RECORDING_RECORDING_JSON_H
#define PTMEM_RECORDING_RECORDING_JSON_H

#include <stdio.h>

#include "recording/recording.h"

/*
 * The caller checks the stream for errors. @more: further members, ",\"name\":value"; "" for
 * none.
 */
void recording_json_write(FILE *out, const struct recording *r, const char *more);

#endif
