/*
 * Call paths of a massif file: a tree begins at the allocation functions and grows towards main,
 * and a node's own bytes belong to the path that ends there; ranks of its frames
 * (symbols/wrapper.h), and the call sites of its stacks.
 */
#ifndef PTMEM_REPORT_MASSIF_PATHS_H
#define PTMEM_REPORT_MASSIF_PATHS_H

#include "recording/recording_view.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

/* By what the user says, too: @file->my_code. */
enum frame_rank massif_wrapper_rank(const struct massif_file *file,
				    const struct massif_frame *frame);

/* Whether the function is an allocator by its name. */
bool massif_wrapper_is_allocator(const struct massif_frame *frame);

/*
 * The trees of a massif file as tables of a recording, so that trees, differences, gates and pages
 * read one kind of profile: OBJECTS, FRAMES (the distinct lines, without their addresses), NODES
 * (main first) and LEAVES, with the call sites of their nodes. Sites below the threshold are frames
 * "[below threshold]"; a root is a frame, "[allocation functions]", only if it is the whole stack.
 */
struct massif_paths {
	struct recording *recording;
	VEC(int64_t) site;         /* recording->node_site; -1 for nodes without a leaf */
	VEC(uint32_t) sample;      /* by frame: a node of the file that has it */
	uint32_t *leaf;            /* by node of the file: its leaf + 1; 0: no bytes of its own */
};

/* Made at the first call, with file->my_code as it is then. */
const struct massif_paths *massif_paths(struct massif_file *file);
/* Frees what massif_paths has made of @file, which may be NULL. Before the file. */
void massif_paths_free(struct massif_file *file);

/* What the tree of snapshot @index holds; nothing without a tree. @v: recording_view_deinit. */
void massif_paths_view(struct massif_file *file, size_t index, struct recording_view *v);

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
 * The parts of "function (file:line)" for @node, as UTF-8; the caller frees both. *@location_out is
 * "(file:line)" or "(in object)", NULL if there is none.
 */
void massif_paths_site(const struct massif_file *file, uint32_t node, char **function_out,
		       char **location_out);

#endif
