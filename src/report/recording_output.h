/*
 * A recording, or a view of it, in the forms of --format: text for a terminal, a table (RFC 4180),
 * a file for speedscope, a massif.out file, and the member of its JSON that says what is asked.
 * Errors of a stream are left in it.
 */
#ifndef PTMEM_REPORT_RECORDING_OUTPUT_H
#define PTMEM_REPORT_RECORDING_OUTPUT_H

#include <stdio.h>

#include "base/amount.h"
#include "base/option_row.h"
#include "recording/recording.h"
#include "recording/recording_view.h"

/* Which rows of a sorted table are shown; the others are one row. */
struct row_limits {
	unsigned top;     /* the first ones, at most so many */
	double threshold; /* of them those with this percentage of the sum at least */
};

/* Whether row @i, of @part of @all, is shown. */
bool row_limits_allow(const struct row_limits *limits, size_t i, uint64_t part, uint64_t all);

/*
 * A table of threads, with @limits, and one each of all sizes and lifetimes. Those without a row
 * are left out.
 */
void recording_spread_print(FILE *out, const struct recording *r, const struct row_limits *limits);

/*
 * How long the blocks of each call site of a recording lived, as text: the mean of those that were
 * released, the share of those that were not, and how old these are. Nothing if no block is known.
 */
void recording_lifetime_print(FILE *out, const struct recording *r,
			      const struct row_limits *limits);

/*
 * A recording as text for a terminal: what was profiled, what holds the memory, what remains, what
 * is churn. Fails as recording_view_init.
 */
int recording_text_print(FILE *out, const struct recording *r, const struct recording_question *q,
			 const struct row_limits *limits, char **why_out);

/* A view of one of several recordings. */
struct recording_part {
	const struct recording *recording;
	const struct recording_view *view;
};

/*
 * Adds the call sites of @part, whose bytes are what @what says in words, and the leaks of its
 * recording, as findings; with @can_match, each with a --match that selects it.
 */
struct brief;
void recording_brief(struct brief *b, const struct recording_part *part, const char *what,
		     bool can_match);

/*
 * A table of the call sites of all @part together. Their recordings are exact, or samples with one
 * interval.
 */
void recording_sites_print(FILE *out, const char *title, const struct recording_part *part,
			   size_t count, const struct row_limits *limits);

/*
 * What is asked of a recording, and the answer, as a member of its JSON (doc/format.md):
 * ",\n\"view\":{...}" in *@out, which the caller frees; "" if no view is requested. Fails as
 * recording_view_init.
 */
int recording_view_json(const struct recording *r, const struct recording_question *q, char **out,
			char **why_out);

/*
 * A view of a recording as a table (RFC 4180): a line for each call path that has something of it,
 * with the counters of its leaves. Leaves are of one path if the names and lines of their frames
 * are equal: addresses differ if a library was loaded several times. Of samples "error" is the
 * standard error of the bytes. The call path is in the last column, outermost caller first, " > "
 * between.
 */
void recording_csv_write(FILE *out, const struct recording *r, const struct recording_view *v);

/* What is asked about functions and source files. */
struct source_question {
	const char *name;                  /* of a function, or the end of a source file's path */
	const struct option_strings *dirs; /* with sources that are not where they were compiled */
	const struct row_limits *limits;   /* of callers and callees */
};

/*
 * Source lines of the file or function q->name with what @v counts of the call paths through them.
 * -ENOENT and *@why_out, which the caller frees, if there are no such lines.
 */
int recording_annotate_print(FILE *out, const struct recording *r, const struct recording_view *v,
			     const struct source_question *q, char **why_out);

/*
 * The callers of the function q->name, and its callees, with what @v counts of the call paths
 * through them. -ENOENT and *@why_out, which the caller frees, if there is no such function.
 */
int recording_peek_print(FILE *out, const struct recording *r, const struct recording_view *v,
			 const struct source_question *q, char **why_out);

/*
 * Call paths of a view as a file for speedscope: one sampled profile, weights in bytes. @name:
 * description of the values.
 */
void recording_speedscope_write(FILE *out, const struct recording *r,
				const struct recording_view *v, const char *name);

/*
 * A recording as a massif.out file, for ms_print and other readers of that format: a snapshot at
 * the end of each interval, each tenth and the last with its call tree, and one of the peak; or of
 * @view alone, if it is not NULL. @threshold: percent of a snapshot; call paths with less are
 * summed up.
 */
void recording_massif_write(FILE *out, const struct recording *r,
			    const struct recording_view *view, double threshold);

#endif
