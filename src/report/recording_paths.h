/* Call paths of a recording with values of a view, for trees, tables and summaries. */
#ifndef PTMEM_REPORT_RECORDING_PATHS_H
#define PTMEM_REPORT_RECORDING_PATHS_H

#include "base/alloc.h"
#include "output/path_tree.h"
#include "recording/recording_view.h"

/*
 * Adds the bytes of @v to @t, the outermost function first, as PATH_NEW; the caller updates
 * totals.
 */
void recording_paths_add(struct path_tree *t, const struct recording *r,
			 const struct recording_view *v);

typedef VEC(uint64_t) recording_frames; /* rows of FRAMES */

/* Adds the frames of leaf @leaf (row) to @out, innermost first. */
void recording_leaf_frames(const struct recording *r, size_t leaf, recording_frames *out);

/*
 * The name of frame @frame: its function, else "[object]" or "[file:line]"; as text_clean. The
 * caller frees it.
 */
char *recording_frame_name(const struct recording *r, size_t frame);
/* "function (file:line)" or "function (in object)". The caller frees it. */
char *recording_frame_label(const struct recording *r, size_t frame);
/*
 * The label of the call site at @node, as the summary has it: without what a compiler appends to
 * the names of a function's clones. -1: "[unknown]". The caller frees it.
 */
char *recording_site_label(const struct recording *r, int64_t node);

/*
 * "the recording has no function 'pars'; similar: parse, parse_line". With @is_file it may be a
 * source file, too, and a function that is there has no lines. The caller frees it.
 */
char *recording_not_found(const struct recording *r, bool is_file, const char *wanted);

#endif
