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

struct json_writer;

/* The member "meta". */
void recording_json_meta(struct json_writer *w, const struct recording *r);
/*
 * Those that follow the names (my_code, objects, frames, nodes).
 * @interval_end: if intervals differ in length, the ends of all, ms; NULL: they do not.
 */
void recording_json_members(struct json_writer *w, const struct recording *r,
			    const uint64_t *interval_end);

/* The member "my_code", the columns of a table as an object, or its rows as a list of objects. */
void recording_json_rules(struct json_writer *w, const struct recording *r);
void recording_json_table(struct json_writer *w, const struct recording *r,
			  enum recording_table_id id);
void recording_json_list(struct json_writer *w, const struct recording *r,
			 enum recording_table_id id, bool has_lines);
/* One column. */
void recording_json_column(struct json_writer *w, const struct recording *r,
			   enum recording_table_id id, unsigned column);

/* What --inspect found: an object, or null if @r has no inspection. */
void recording_inspection_write(FILE *out, const struct recording *r);

#endif
