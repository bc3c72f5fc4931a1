/* Smaller recordings: copies with less detail, and what --record-limit leaves out. */
#ifndef PTMEM_RECORDING_RECORDING_REDUCE_H
#define PTMEM_RECORDING_RECORDING_REDUCE_H

#include "recording/recording.h"

/*
 * Copies a recording without some of its detail. Sums stay exact: what is left out of a table is
 * added to one row, of other call paths or other threads.
 */

/* How much remains. A table with fewer rows is copied as it is. */
struct recording_detail {
	unsigned merges;           /* how often intervals are merged in pairs */
	size_t leaves, threads;    /* with rows of their own: those that allocated most */
	size_t releases;           /* the same for stacks that release blocks */
	size_t markers;            /* the last ones */
	bool has_inspection;
	size_t text_size;          /* of a value of META; longer ones are cut */
	bool is_checked;           /* the recording is as recording_check makes it; no merges */
};

/* All of @r. */
struct recording_detail recording_detail_all(const struct recording *r);

/*
 * A copy of @r, which is as recording_build_all makes it unless detail->is_checked, with no more
 * than @detail; the caller frees it.
 */
struct recording *recording_reduce(const struct recording *r,
				   const struct recording_detail *detail);

/*
 * --record-limit: recordings whose file has at most a given size. What is thinned is said in the
 * recording itself, as something lost.
 */

#define RECORDING_LEAST_LIMIT 65536 /* bytes; less than that could not be kept */

/*
 * A copy of @r, which is as recording_build_all makes it, whose file has at most @limit bytes; the
 * caller frees it. NULL: that of @r has.
 */
struct recording *recording_limit(const struct recording *r, uint64_t limit);

#endif
