/*
 * The trees of all snapshots of a massif file merged into one by functions and lines; the weight of
 * a node is its maximum. Wrappers (symbols/wrapper.h) at the leaves are skipped, so the merged tree
 * begins at their callers.
 *
 *	file:    mmap64 <- malloc <- fill (t.c:8) <- main         merged:  fill (t.c:8) <- main
 *	         mmap64 <- _dl_map_segments <- dl_main                     [dynamic loader]
 */
#ifndef PTMEM_REPORT_MASSIF_MERGED_H
#define PTMEM_REPORT_MASSIF_MERGED_H

#include "output/path_tree.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

/* The merged node of a node of the file. */
struct massif_place {
	uint32_t node;         /* merged; 0 = none */
	uint64_t bytes;        /* bytes counted there */
	enum frame_rank rank;  /* RANK_SITE: counts; else skipped in favour of its callers */
	bool is_ended;         /* no caller can be the call site: RANK_THREAD */
	uint32_t named;        /* node of the file with its name: for wrappers, the best so far */
};

struct massif_merged {
	const struct massif_file *file;
	struct path_tree *tree;
	struct massif_place *place; /* by node of the file */
	uint64_t *weight;      /* by merged node: its maximum over all snapshots */
	uint32_t *sample;      /* by merged node: a node of the file with its name */
	uint64_t largest;      /* maximum of a tree */
};

void massif_merge(const struct massif_file *f, struct massif_merged *out);
void massif_merged_deinit(struct massif_merged *m);

/* The one caller of @node that has nearly all of its bytes; 0 = none. */
uint32_t massif_merged_only_caller(const struct massif_merged *m, uint32_t node);

/* The function of @node of the merged tree, and its location: NULL if it is not to be shown. */
void massif_merged_name(const struct massif_merged *m, uint32_t node, char **function_out,
			char **location_out);

#endif
