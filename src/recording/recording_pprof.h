/*
 * A recording as pprof's gzipped protocol buffer (pprof_profile.proto): inuse_space and
 * inuse_objects have the selected view, alloc_space and alloc_objects everything ever allocated.
 */
#ifndef PTMEM_RECORDING_RECORDING_PPROF_H
#define PTMEM_RECORDING_RECORDING_PPROF_H

#include <stdio.h>

#include "output/inspect_go.h"
#include "recording/recording_view.h"

enum { PPROF_VALUES = 4 };

/*
 * Values of a leaf, in the order of the first lines. Differences of two profiles may be
 * negative.
 */
struct pprof_value {
	int64_t of[PPROF_VALUES];
};

/*
 * Indexed by row of LEAVES; the caller frees it. @v: the view; @total: VIEW_TOTAL of the same call
 * paths.
 */
struct pprof_value *recording_pprof_values(const struct recording *r,
					   const struct recording_view *v,
					   const struct recording_view *total);

/* @is_allocated: alloc_space is the default in viewers. The caller checks the stream for errors. */
void recording_pprof_write(FILE *out, const struct recording *r, const struct pprof_value *value,
			   bool is_allocated);

/* The same with only the first two values: nothing is known of what was allocated before. */
void recording_pprof_write_live(FILE *out, const struct recording *r,
				const struct pprof_value *value);

/* The heap profile of a Go program, which --inspect has read, in the same form. */
void recording_pprof_write_go(FILE *out, const struct inspect_go *g);

#endif
