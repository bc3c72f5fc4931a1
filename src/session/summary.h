/*
 * What ptmem prints on standard error about a session: hints at its start, and at its end the
 * summary, its largest call sites and hints.
 */
#ifndef PTMEM_SESSION_SUMMARY_H
#define PTMEM_SESSION_SUMMARY_H

#include <stdbool.h>

#include "output/call_sites.h"

struct largest;
struct session;

/* Warns if the program just started by @s runs without the privileges of its file. */
void hints_at_start(const struct session *s);

/*
 * The largest call sites at the peak of a profile, for the summary: at the exact peak if there is a
 * history, otherwise at the peak's snapshot, which is within --peak-inaccuracy of it.
 */

#define LARGEST_SITES 3

struct largest {
	struct call_site_sum site[LARGEST_SITES];
	size_t count;   /* 0 if there was no peak */
	uint64_t bytes; /* of all sites at the peak */
	struct nameless_sites nameless;
	double error[LARGEST_SITES]; /* of each site's bytes; 0 unless they are estimates */
};

void largest_find(const struct report *r, struct largest *out);

/*
 * The bytes of each leaf at the peak, exact if @p has a history, else at the peak's snapshot.
 * *sum_out: of all. The caller frees both arrays, which are NULL without a peak.
 */
void peak_amounts(const struct profile *p, struct leaf_amounts *out, uint64_t *sum_out);
void largest_print(const struct largest *l);
void largest_deinit(struct largest *l);

/* The summary on standard error at the end of a session. */

/*
 * Prints the lines for the process, and the statistics with --stats. @path: of its massif file, or
 * NULL. The caller frees *@largest_out.
 */
void summary_print(struct session *s, const char *path, struct largest *largest_out);
/* Whether @line, a hint, says that the process allocated nothing. */
bool summary_is_hint_of_none(const char *line);
/* Its line about the peak. */
void summary_print_peak(const struct session *s);
/* Its lines about labels, if it has any. */
void summary_print_labels(const struct session *s);

/*
 * Says where the massif file @path is, and how to read it. Nothing, if it is NULL, or not a regular
 * file: "-", /dev/null.
 */
void summary_print_file(const char *path);

#endif
