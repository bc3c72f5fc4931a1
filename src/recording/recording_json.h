/* A recording as JSON, for the report and other tools: doc/format.md defines it. */
#ifndef PTMEM_RECORDING_RECORDING_JSON_H
#define PTMEM_RECORDING_RECORDING_JSON_H

#include <stdio.h>

#include "recording/recording.h"

/* Errors of the stream are left in it. */
void recording_json_write(FILE *out, const struct recording *r);
/* Two of them, to be compared. */
void recording_json_write_diff(FILE *out, const struct recording *old, const struct recording *new);

/* @text as a JSON string, quotes included: valid UTF-8; NULL is null. */
void recording_json_string(FILE *out, const char *text);

#endif
