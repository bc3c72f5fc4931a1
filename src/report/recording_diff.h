/* A recording as one side of a difference. */
#ifndef PTMEM_REPORT_RECORDING_DIFF_H
#define PTMEM_REPORT_RECORDING_DIFF_H

#include "report/diff_paths.h"
#include "recording/recording_view.h"

/* The frames of @r, by row; @other is the other side. */
void recording_diff_match(struct frame_match *m, enum path_side side, const struct recording *r,
			  const struct recording *other);
/* The stacks of the leaves in @v. */
void recording_diff_add(struct diff_paths *p, enum path_side side, const struct recording *r,
			const struct recording_view *v);

#endif
