/*
 * Copies a recording without some of its detail. Sums stay exact: what is left out of a table is
 * added to one row, of other call paths or other threads.
 */
#ifndef PTMEM_RECORDING_RECORDING_THIN_H
#define PTMEM_RECORDING_RECORDING_THIN_H

#include "recording/recording.h"

/* How much remains. A table with fewer rows is copied as it is. */
struct recording_detail {
	unsigned merges;           /* how often intervals are merged in pairs */
	size_t leaves, threads;    /* with rows of their own: those that allocated most */
	size_t releases;           /* the same for stacks that release blocks */
	size_t markers;            /* the last ones */
	bool has_inspection;
	size_t text_size;          /* of a value of META; longer ones are cut */
};

/* All of @r. */
struct recording_detail recording_detail_all(const struct recording *r);

/*
 * A copy of @r, which is as recording_build_all makes it, with no more than @detail; the caller
 * frees it.
 */
struct recording *recording_thin(const struct recording *r, const struct recording_detail *detail);

#endif
