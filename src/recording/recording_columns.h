/*
 * Columns of a recording's tables as JSON arrays, with a format for each kind of value
 * (doc/format.md).
 */
#ifndef PTMEM_RECORDING_RECORDING_COLUMNS_H
#define PTMEM_RECORDING_RECORDING_COLUMNS_H

#include <stdio.h>

#include "recording/recording.h"

typedef void put_value(FILE *out, const struct recording *r, uint64_t value);

put_value recording_put_number, recording_put_text, recording_put_address;
/* A number of blocks or calls; with samples a fraction, so that sums of many are unbiased. */
put_value recording_put_count;
put_value recording_put_index;    /* of an index + 1; -1 = none */
put_value recording_put_interval; /* -1 = before the first one, or never */
put_value recording_put_sample;   /* of bytes + 1; null = unknown */
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

/* `"name":[...]` for each of @c, which ends with an element without a name. */
void recording_put_columns(FILE *out, const struct recording *r, enum recording_table_id id,
			   const struct json_column *c);
/* The same for one column of the timeline, after a comma; sums become what each interval added. */
void recording_put_steps(FILE *out, const struct recording *r, const struct json_column *c);

#endif
