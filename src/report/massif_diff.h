/* A massif file as one side of a difference. */
#ifndef PTMEM_REPORT_MASSIF_DIFF_H
#define PTMEM_REPORT_MASSIF_DIFF_H

#include "report/diff_paths.h"
#include "report/massif_file.h"

/* The lines of all trees of @file, by node, including the unused node 0. */
void massif_diff_match(struct frame_match *m, enum path_side side, const struct massif_file *file);
/* The stacks of the tree of snapshot @index. */
void massif_diff_add(struct diff_paths *p, enum path_side side, const struct massif_file *file,
		     size_t index);

#endif
