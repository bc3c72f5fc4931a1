/* A recording as JSON, for the report and other tools: doc/format.md defines it. */
#ifndef PTMEM_RECORDING_RECORDING_JSON_H
#define PTMEM_RECORDING_RECORDING_JSON_H

#include <stdio.h>

#include "recording/recording.h"

/* A number of blocks or calls; with samples a fraction, so that sums of many are unbiased. */
void recording_put_count(FILE *out, const struct recording *r, uint64_t value);
void recording_put_variance(FILE *out, const struct recording *r, uint64_t value); /* bytes^2 */

/* Samples do not show which block was the last of its thread. */
bool recording_knows_temporary(const struct recording *r);

/*
 * The caller checks the stream for errors. @more: further members, ",\"name\":value"; "" for
 * none.
 */
void recording_json_write(FILE *out, const struct recording *r, const char *more);

/* What --inspect found: an object, or null if @r has no inspection. */
void recording_inspection_write(FILE *out, const struct recording *r);

#endif
