/* See recording_head.h. */
#include "report/recording_head.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/call_totals.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_columns.h"
#include "recording/recording_temporary.h"
#include "recording/sampling_note.h"

const char *recording_error_text(const struct recording *r, const struct recording_value *value,
				 char out[static AMOUNT_SIZE])
{
	return amount_error((double)value->bytes, recording_error(r, value->variance), out);
}

char *recording_value_text(const struct recording *r, const struct recording_value *value,
			   const char *unit)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], error[AMOUNT_SIZE];
	uint64_t count = recording_count(r, value->blocks);

	amount_commas(count, blocks);
	if (r->interval)
		return xasprintf("%s%s in about %s %s%s",
				 amount_bytes((double)value->bytes, bytes),
				 recording_error_text(r, value, error), blocks, unit,
				 plural(count));
	return xasprintf("%s byte%s in %s %s%s", amount_commas(value->bytes, bytes),
			 plural(value->bytes), blocks, unit, plural(count));
}

static void put_fact(FILE *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	_cleanup_free_ char *clean = text_clean(value, strlen(value));

	fprintf(out, "%-12s %s\n", name, clean);
}

static void put_peak(FILE *out, const struct recording *r)
{
	char human[AMOUNT_SIZE], bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	if (!recording_rows(r, RECORDING_PEAK_AT))
		return;
	const struct recording_value peak = {
		recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES),
		recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BLOCKS),
		(double)recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_VARIANCE)};
	_cleanup_free_ char *estimate = recording_value_text(r, &peak, "block");

	fprintf(out, "%-12s ", "peak");
	if (r->interval)
		fputs(estimate, out);
	else
		fprintf(out, "%s (%s byte%s) in %s block%s",
			amount_bytes((double)peak.bytes, human), amount_commas(peak.bytes, bytes),
			plural(peak.bytes), amount_commas(peak.blocks, blocks),
			plural(peak.blocks));
	fprintf(out, " after %.3f s%s\n",
		(double)recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME) / 1000,
		r->interval ? ", the highest of all estimates" : "");
}

static uint64_t end_value(const struct recording *r, unsigned column)
{
	return recording_get(r, RECORDING_END, recording_rows(r, RECORDING_END) - 1, column);
}

static void put_counted(FILE *out, const struct recording *r)
{
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE], c[AMOUNT_SIZE], d[AMOUNT_SIZE];

	uint64_t bytes = end_value(r, END_ALLOCATED_BYTES), frees = end_value(r, END_FREES);
	uint64_t reallocs = end_value(r, END_REALLOCS);

	fprintf(out, "%-12s %s of %s byte%s, %s realloc%s, %s free%s\n", "allocations",
		amount_commas(end_value(r, END_ALLOCATIONS), a), amount_commas(bytes, b),
		plural(bytes), amount_commas(reallocs, c), plural(reallocs),
		amount_commas(frees, d), plural(frees));
}

static void put_temporary(FILE *out, const struct recording *r)
{
	_cleanup_free_ char *text = recording_temporary_text(r);
	uint64_t blocks = recording_count(r, end_value(r, END_TEMPORARY));
	char commas[AMOUNT_SIZE];

	if (recording_knows_temporary(r))
		fprintf(out, "%-12s %s%s%s%s\n", "temporary", r->interval ? "about " : "",
			amount_commas(blocks, commas), text ? ", " : "", text ? text : "");
}

/* Calls of functions that release request no bytes. */
static void put_sampled(FILE *out, const struct recording *r)
{
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE], c[AMOUNT_SIZE];
	uint64_t calls = 0, bytes = 0, frees = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_CALLS); i++) {
		const char *name =
			r->text.data[recording_get(r, RECORDING_CALLS, i, CALL_FUNCTION)];
		bool is_free = !strcmp(name, "free") || !strcmp(name, "operator delete");

		*(is_free ? &frees : &calls) += recording_get(r, RECORDING_CALLS, i, CALL_CALLS);
		bytes += recording_get(r, RECORDING_CALLS, i, CALL_BYTES);
	}
	fprintf(out, "%-12s %s of %s byte%s, %s %s: %s\n", "allocations",
		amount_commas(calls, a), amount_commas(bytes, b), plural(bytes),
		amount_commas(frees, c), call_totals_frees(frees),
		call_totals_trust(recording_meta(r, "corrupt") != NULL));
	_cleanup_free_ char *range = sampling_range(r->interval, recording_longest_interval(r));

	fprintf(out, "%-12s one every %s on average: sizes and numbers of blocks are estimates\n",
		"sampled", range);
}

/* A copy made after the end of the program lacks only totals. */
static void put_incomplete(FILE *out, const struct recording *r)
{
	if (!r->is_copy)
		put_fact(out, "incomplete",
			 "ptmem did not end normally: this is all up to its last second");
	else if (!recording_meta(r, "exit"))
		put_fact(out, "so far", "a copy made while the program ran");
}

static void put_totals(FILE *out, const struct recording *r)
{
	if (!r->is_complete)
		put_incomplete(out, r);
	if (recording_meta(r, "corrupt"))
		put_fact(out, "corrupt",
			 "the program overwrote memory shared with ptmem: the profile ends there");
	if (r->interval)
		put_sampled(out, r);
	if (!r->is_complete)
		return;
	if (!r->interval)
		put_counted(out, r);
	put_temporary(out, r);
	const struct recording_value live = {end_value(r, END_LIVE_BYTES),
					     end_value(r, END_LIVE_BLOCKS),
					     (double)end_value(r, END_LIVE_VARIANCE)};
	_cleanup_free_ char *text = recording_value_text(r, &live, "block");

	fprintf(out, "%-12s %s in use\n", "at the end", text);
}

/* Which of several recordings it is, and when it began. */
static void put_part(FILE *out, const struct recording *r)
{
	const char *part = recording_meta(r, "part"), *start = recording_meta(r, "start");
	time_t begin = start ? (time_t)strtoll(start, NULL, 10) : 0;
	struct tm tm;
	char text[64];

	put_fact(out, "part", part);
	if (part && start && localtime_r(&begin, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm))
		put_fact(out, "from", text);
}

/* The only key with several values. */
static void put_lost(FILE *out, const struct recording *r)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_META); i++) {
		uint64_t key = recording_get(r, RECORDING_META, i, META_KEY);
		uint64_t value = recording_get(r, RECORDING_META, i, META_VALUE);

		if (strcmp(r->text.data[key], "lost") == 0)
			put_fact(out, "lost", r->text.data[value]);
	}
}

void recording_head_print(FILE *out, const struct recording *r)
{
	put_fact(out, "program", recording_meta(r, "command"));
	put_fact(out, "process", recording_meta(r, "pid"));
	put_fact(out, "cgroup", recording_meta(r, "cgroup"));
	put_part(out, r);
	put_fact(out, "end", recording_meta(r, "exit"));
	put_lost(out, r);
	put_fact(out, "times", recording_meta(r, "times"));
	put_peak(out, r);
	put_totals(out, r);
}
