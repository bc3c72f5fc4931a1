/* Two profiles to be compared: both recordings, or both massif files. */
#ifndef PTMEM_REPORT_DIFF_PAIR_H
#define PTMEM_REPORT_DIFF_PAIR_H

#include "report/diff_paths.h"
#include "report/input.h"
#include "recording/recording_view.h"

/* Indexed by enum path_side. */
struct diff_pair {
	const struct input *input;      /* of one kind */
	struct recording_view view[2];  /* for recordings */
	size_t snapshot[2];             /* for massif files: index */
	struct frame_match *match;
};

/* All frames of @input[PATH_OLD] and @input[PATH_NEW]; the caller frees it. */
struct frame_match *diff_pair_match(const struct input *input);

/* The values of the view on both sides; the caller frees it. */
struct path_tree *diff_pair_tree(const struct diff_pair *pair, enum diff_order order);

#endif
