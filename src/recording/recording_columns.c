/* See recording_columns.h. */
#include "recording/recording_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/json_text.h"
#include "profile/cells.h"
#include "profile/estimate.h"

void recording_put_string(FILE *out, const char *text)
{
	if (text)
		json_put_text(out, text, strlen(text));
	else
		fputs("null", out);
}

static const char *recording_text_at(const struct recording *r, uint64_t index)
{
	return index ? r->text.data[index] : NULL;
}

void recording_put_number(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRIu64, value);
}

void recording_put_count(FILE *out, const struct recording *r, uint64_t value)
{
	if (r->interval && value % ESTIMATE_UNIT)
		fprintf(out, "%.4f", (double)value / (double)ESTIMATE_UNIT);
	else
		recording_put_number(out, r, r->interval ? value / ESTIMATE_UNIT : value);
}

/* In bytes squared. */
void recording_put_variance(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%.9g", recording_square_error(r, (double)value));
}

/* Of an index + 1: -1 = none. */
void recording_put_index(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "%" PRId64, (int64_t)value - 1);
}

void recording_put_interval(FILE *out, const struct recording *r, uint64_t value)
{
	bool is_outside = value == CELL_NEVER || value == CELL_BEFORE;

	fprintf(out, "%" PRId64, is_outside ? -1 : (int64_t)value);
}

void recording_put_text(FILE *out, const struct recording *r, uint64_t value)
{
	recording_put_string(out, recording_text_at(r, value));
}

void recording_put_address(FILE *out, const struct recording *r, uint64_t value)
{
	fprintf(out, "\"0x%" PRIx64 "\"", value);
}

/* Of bytes + 1: null = unknown. */
void recording_put_sample(FILE *out, const struct recording *r, uint64_t value)
{
	if (value)
		fprintf(out, "%" PRIu64, value - 1);
	else
		fputs("null", out);
}

bool recording_knows_temporary(const struct recording *r)
{
	return !r->interval || r->temporary_below;
}

static void put_column(FILE *out, const struct recording *r, enum recording_table_id id,
		       const struct json_column *c)
{
	fprintf(out, "\"%s\":", c->name);
	if (c->when == OF_TEMPORARY && !recording_knows_temporary(r)) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (size_t i = 0; i < recording_rows(r, id); i++) {
		if (i > 0)
			putc(',', out);
		c->put(out, r, recording_get(r, id, i, c->column));
	}
	putc(']', out);
}

void recording_put_columns(FILE *out, const struct recording *r, enum recording_table_id id,
			const struct json_column *c)
{
	for (size_t i = 0; c[i].name; i++) {
		if (c[i].when == OF_SAMPLES && !r->interval)
			continue;
		if (i > 0)
			fputs(",\n", out);
		put_column(out, r, id, &c[i]);
	}
}

/* Converts cumulative sums to what each interval added. */
void recording_put_steps(FILE *out, const struct recording *r, const struct json_column *c)
{
	uint64_t last = 0;

	fprintf(out, ",\n\"%s\":[", c->name);
	for (size_t i = 0; i < recording_rows(r, RECORDING_TIMELINE); i++) {
		uint64_t sum = recording_get(r, RECORDING_TIMELINE, i, c->column);

		if (i > 0)
			putc(',', out);
		c->put(out, r, sum - last);
		last = sum;
	}
	putc(']', out);
}

