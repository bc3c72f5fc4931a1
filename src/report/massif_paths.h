/*
 * Call paths of a massif file: a tree begins at the allocation functions and grows towards main,
 * and a node's own bytes belong to the path that ends there; ranks of its frames
 * (symbols/wrapper.h), and the call sites of its stacks.
 */
#ifndef PTMEM_REPORT_MASSIF_PATHS_H
#define PTMEM_REPORT_MASSIF_PATHS_H

#include "output/path_tree.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

/* By what the user says, too: @file->my_code. */
enum frame_rank massif_wrapper_rank(const struct massif_file *file,
				    const struct massif_frame *frame);

/* Whether the function is an allocator by its name. */
bool massif_wrapper_is_allocator(const struct massif_frame *frame);

/*
 * The call site (symbols/wrapper.h) of the stack that ends with @outermost: the number of frames
 * inside it. The root is a frame only if it is the whole stack.
 */
size_t massif_wrapper_site(const struct massif_file *file, uint32_t outermost);

/*
 * Converts a massif file's trees to call paths. A massif tree begins at the allocation functions
 * and grows towards main; a node's own bytes belong to the path that ends there.
 */

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

/* "peak snapshot 7"; the caller frees it. */
char *massif_snapshot_text(const struct massif_file *file, size_t index);

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
