/* A recording as JSON (doc/format.md): its columns, what --inspect found, and the whole. */
#ifndef PTMEM_RECORDING_RECORDING_JSON_H
#define PTMEM_RECORDING_RECORDING_JSON_H

#include <stdio.h>

#include "recording/recording.h"
#include "recording/recording_format.h"

/*
 * Columns of a recording's tables as JSON arrays, with a format for each kind of value
 * (doc/format.md).
 */

typedef void put_value(FILE *out, const struct recording *r, uint64_t value);

put_value recording_put_number;
/* A number of blocks or calls; with samples a fraction, so that sums of many are unbiased. */
put_value recording_put_count;
put_value recording_put_variance; /* in bytes squared */

struct json_column {
	const char *name;
	uint8_t column;
	put_value *put;
	enum {
		ALWAYS,
		OF_SAMPLES,    /* only present if values are estimates */
		OF_TEMPORARY,  /* null if it is not known what is temporary */
	} when;
};

/* @text as a JSON string with quotes, in valid UTF-8; NULL becomes null. */
void recording_put_string(FILE *out, const char *text);

/* Samples do not show which block was the last of its thread. */
bool recording_knows_temporary(const struct recording *r);

/* A recording as JSON, for the report and other tools: doc/format.md defines it. */

/*
 * The caller checks the stream for errors. @more: further members, ",\"name\":value"; "" for
 * none.
 */
void recording_json_write(FILE *out, const struct recording *r, const char *more);

/* What --inspect found in a recorded process: copied, and as JSON (doc/format.md). */

/* Adds the inspection of @from to @r, which has the leaves of its pins. NULL: there is none. */
void recording_inspection_add(const struct recording *from, struct recording *r);
/* Writes its tables. */
void recording_inspection_put(struct recording_out *out, const struct recording *r);

/* An object, or null if @r has no inspection. */
void recording_inspection_write(FILE *out, const struct recording *r);

#endif
