/* A recording as JSON, for the report and other tools: doc/format.md defines it. */
#ifndef PTMEM_RECORDING_RECORDING_JSON_H
#define PTMEM_RECORDING_RECORDING_JSON_H

#include <stdio.h>

#include "recording/recording.h"

/* Errors of the stream are left in it. @more: further members, ",\"name\":value"; "" for none. */
void recording_json_write(FILE *out, const struct recording *r, const char *more);

/* @text as a JSON string, quotes included: valid UTF-8; NULL is null. */
void recording_json_string(FILE *out, const char *text);

#endif
