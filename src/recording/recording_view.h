/*
 * What is asked of a recording: a view selects the blocks that count, by leaf; an expression keeps
 * some call paths; a time says what is temporary.
 */
#ifndef PTMEM_RECORDING_RECORDING_VIEW_H
#define PTMEM_RECORDING_RECORDING_VIEW_H

#include "recording/recording.h"

/*
 * Counts as temporary what lived less than @us, rounded up to the end of a bucket of lifetimes: a
 * power of two, which r->temporary_below becomes. With samples, the counts become estimates.
 */
void recording_temporary_within(struct recording *r, uint64_t us);

/*
 * The sum of the lifetimes of released blocks, in microseconds, by row of LEAVES; the caller frees
 * it. NAN: not known, as in files of older versions, or not what the buckets of lifetimes allow.
 */
double *recording_lived(const struct recording *r);

/*
 * Drops all leaves, and their rows in other tables, whose paths contain no function, file or object
 * that matches @match, and all releasing stacks that do not match. Names, the timeline and
 * process-wide data remain. -EINVAL and *@why_out, which the caller frees, if the expression is
 * invalid.
 */
int recording_keep_matches(struct recording *r, const char *match, char **why_out);

/*
 * A view of a recording selects the blocks that count, by leaf.
 *
 *	VIEW_PEAK     live at the exact peak
 *	VIEW_AT       live at the end of one interval
 *	VIEW_RANGE    allocated in a range of intervals, and live at its end
 *	VIEW_OLDER    live at the end, and allocated in an interval before `first`
 *	VIEW_TOTAL    ever allocated (optionally by one thread)
 *	VIEW_TEMPORARY  of these, blocks released before their thread allocated again
 *	VIEW_LEAKED   of one kind in the leak check
 */

enum recording_quantity {
	VIEW_PEAK, VIEW_AT, VIEW_RANGE, VIEW_OLDER, VIEW_TOTAL, VIEW_TEMPORARY, VIEW_LEAKED,
};

struct recording_value {
	uint64_t bytes, blocks; /* blocks: convert to whole ones with recording_count */
	double variance;        /* of the bytes: see recording_error */
};

struct recording_view {
	enum recording_quantity quantity;
	uint32_t first, last;          /* intervals; for VIEW_AT only the last */
	double older_ms;               /* of VIEW_OLDER: the age that was asked for */
	struct recording_value *leaf;  /* by row of LEAVES; owned */
	struct recording_value sum;
};

/* The options that select a view, as given; NULL = not given. */
struct recording_question {
	const char *at, *range, *older, *thread, *match;
};

/*
 * A time of @all ms: 12.5 and 12.5s are seconds, 300ms, 40%, "start" and "end" in ms. false: it is
 * none, or later.
 */
bool recording_time_parse(const char *text, double all, double *ms_out);

/* Whether any is given. */
bool recording_question_is_given(const struct recording_question *q);

/*
 * -EINVAL and *@why_out, which the caller frees, if there is no such time or thread. Ignores
 * `match`, which is recording_keep_matches' part.
 */
int recording_view_init(struct recording_view *v, const struct recording *r,
			const struct recording_question *q, char **why_out);
/* The same for @quantity, */
void recording_view_of(struct recording_view *v, const struct recording *r,
		       enum recording_quantity quantity);
/*
 * for leaks of @kind ("definite", as in LEAK_KIND; "lost" = with the indirect ones), at least
 * @older_ms old,
 */
void recording_view_leaks(struct recording_view *v, const struct recording *r, const char *kind,
			  double older_ms);
/* and for the end of an interval. */
void recording_view_at(struct recording_view *v, const struct recording *r, uint32_t interval);
/* Without any value, for readers of other profiles. */
void recording_view_empty(struct recording_view *v, const struct recording *r);
void recording_view_deinit(struct recording_view *v);

void recording_value_add(struct recording_value *to, const struct recording_value *from);

/*
 * "live after 1.250 s": describes the values, and whether they are estimates. The caller frees
 * it.
 */
char *recording_view_text(const struct recording_view *v, const struct recording *r,
			  const struct recording_question *q);

#endif
