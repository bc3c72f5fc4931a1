/*
 * Detail is reduced in the order of `steps` until the file is small enough: first times become
 * coarser, since totals, call paths and what they held stay exact for that; call paths are merged
 * later, those that allocated least first. How much smaller the file becomes is not known before
 * it was written.
 */
#include "recording/recording_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_thin.h"
#include "recording/recording_write.h"

#define FIRST_INTERVALS 64u /* intervals, and rows, that remain before the next step */
#define FIRST_ROWS 64u
#define LAST_INTERVALS 8u
#define SHORT_TEXT 256u

static uint64_t file_size(const struct recording *r)
{
	char *data = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&data, &size);

	CHECK(file && recording_write(file, r) == 0 && fclose(file) == 0);
	free(data);
	return size;
}

/* -- steps -- */

struct step {
	const struct recording *r;
	struct recording_detail *detail;
	double part;               /* of the size that is left to use, below 1 */
};

static bool merge_to(const struct step *s, size_t least)
{
	size_t n = recording_rows(s->r, RECORDING_TIMELINE);

	if (n >> s->detail->merges <= least)
		return false;
	s->detail->merges++;
	return true;
}

/* Reduces the @rows of a table, or their number @kept, by what the file is too large. */
static bool reduce(const struct step *s, size_t *kept, size_t least)
{
	if (*kept <= least)
		return false;
	*kept = MAX((size_t)((double)*kept * s->part * 0.9), least);
	return true;
}

static bool merge_some(const struct step *s)
{
	return merge_to(s, FIRST_INTERVALS);
}

static bool drop_inspection(const struct step *s)
{
	bool had = s->detail->has_inspection;

	s->detail->has_inspection = false;
	return had;
}

static bool reduce_threads(const struct step *s)
{
	return reduce(s, &s->detail->threads, FIRST_ROWS);
}

static bool reduce_releases(const struct step *s)
{
	return reduce(s, &s->detail->releases, FIRST_ROWS);
}

static bool reduce_markers(const struct step *s)
{
	return reduce(s, &s->detail->markers, FIRST_ROWS);
}

static bool reduce_leaves(const struct step *s)
{
	return reduce(s, &s->detail->leaves, FIRST_ROWS);
}

static bool merge_more(const struct step *s)
{
	return merge_to(s, LAST_INTERVALS);
}

/* All that has no fixed number. */
static bool keep_sums(const struct step *s)
{
	struct recording_detail *d = s->detail;

	if (d->text_size == SHORT_TEXT)
		return false;
	d->leaves = d->threads = d->releases = d->markers = 0;
	d->text_size = SHORT_TEXT;
	return true;
}

static bool (*const steps[])(const struct step *s) = {
	merge_some,    drop_inspection, reduce_threads, reduce_releases, reduce_markers,
	reduce_leaves, merge_more,      keep_sums,
};

static bool take_step(const struct step *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i](s))
			return true;
	return false;
}

/* -- what is said about it -- */

static void add_rows_note(FILE *out, size_t all, size_t kept, const char *what)
{
	char number[AMOUNT_SIZE];

	if (kept < all)
		fprintf(out, "; %s %s", amount_commas(all - kept, number), what);
}

static void add_interval_note(FILE *out, const struct recording *r, unsigned merges)
{
	uint64_t shift = recording_get(r, RECORDING_TIMELINE, 0, TIME_SHIFT);

	if (merges)
		fprintf(out, "; intervals of %.3f s instead of %.3f s",
			(double)(UINT64_C(1) << (shift + merges)) / 1000,
			(double)(UINT64_C(1) << shift) / 1000);
}

static void add_note(const struct recording *r, const struct recording_detail *d, uint64_t limit,
		     struct recording *thin)
{
	const struct recording_detail all = recording_detail_all(r);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	fprintf(out, "thinned to %" PRIu64 " bytes (--record-limit)", limit);
	add_interval_note(out, r, d->merges);
	add_rows_note(out, all.leaves, d->leaves,
		      "call paths that allocated least are one, [other call paths]");
	add_rows_note(out, all.threads, d->threads,
		      "threads that allocated least are one, [other threads]");
	add_rows_note(out, all.releases, d->releases, "releasing call paths are unknown");
	add_rows_note(out, all.markers, d->markers, "older markers are left out");
	if (all.has_inspection && !d->has_inspection)
		fputs("; what --inspect found is left out", out);
	CHECK(!fclose(out));
	recording_set_meta(thin, "lost", text);
}

struct recording *recording_limit(const struct recording *r, uint64_t limit)
{
	struct recording_detail detail = recording_detail_all(r);
	struct recording *thin = NULL;
	uint64_t size = file_size(r);

	while (size > limit) {
		const struct step step = {r, &detail, (double)limit / (double)size};

		if (!take_step(&step))
			break;
		recording_free(thin);
		thin = recording_thin(r, &detail);
		add_note(r, &detail, limit, thin);
		size = file_size(thin);
	}
	return thin;
}
