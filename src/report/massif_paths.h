/*
 * Converts a massif file's trees to call paths. A massif tree begins at the allocation functions
 * and grows towards main; a node's own bytes belong to the path that ends there.
 */
#ifndef PTMEM_REPORT_MASSIF_PATHS_H
#define PTMEM_REPORT_MASSIF_PATHS_H

#include "output/path_tree.h"
#include "report/massif_file.h"

/* A snapshot: a number as written in the file, or one of these. */
#define MASSIF_SNAPSHOT_DEFAULT UINT64_MAX       /* the peak, else the last with a tree */
#define MASSIF_SNAPSHOT_PEAK (UINT64_MAX - 1)
#define MASSIF_SNAPSHOT_LAST (UINT64_MAX - 2)    /* the last with a tree */

/*
 * *@index_out: index in @file of the snapshot @which. -EINVAL with *@why_out (the caller frees it)
 * if there is none, or it has no tree.
 */
int massif_paths_find(const struct massif_file *file, uint64_t which, size_t *index_out,
		      char **why_out);

/*
 * Adds the tree of snapshot @index to @t, main first, functions by name. Sites below the threshold
 * are frames "[below threshold]", functions without a name "[OBJECT]". The sum of the added values
 * is the root's bytes. The caller updates totals.
 */
void massif_paths_add(const struct massif_file *file, size_t index, struct path_tree *t);

/*
 * The parts of "function (file:line)" for @node, as UTF-8; the caller frees both. *@location_out is
 * "(file:line)" or "(in object)", NULL if there is none.
 */
void massif_paths_site(const struct massif_file *file, uint32_t node, char **function_out,
		       char **location_out);

#endif
