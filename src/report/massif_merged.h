/*
 * The trees of all snapshots of a massif file merged into one by functions and lines, each node
 * weighing what it held at most. Wrappers (symbols/wrapper.h) at the leaves are passed over, so the
 * merged tree begins at the functions that call them.
 *
 *	file:    mmap64 <- malloc <- fill (t.c:8) <- main         merged:  fill (t.c:8) <- main
 *	         mmap64 <- _dl_map_segments <- dl_main                     [dynamic loader]
 */
#ifndef PTMEM_REPORT_MASSIF_MERGED_H
#define PTMEM_REPORT_MASSIF_MERGED_H

#include "output/path_tree.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

/* Where a node of the file counts. */
struct massif_place {
	uint32_t node;         /* merged; 0 = nowhere */
	uint64_t bytes;        /* that count there */
	enum frame_rank rank;  /* RANK_SITE: counts; else passed over for its callers */
	uint32_t named;        /* node of the file that names it: of wrappers, the best so far */
};

struct massif_merged {
	const struct massif_file *file;
	struct path_tree *tree;
	struct massif_place *place; /* by node of the file */
	uint64_t *weight;      /* by merged node: the most it held in a snapshot */
	uint32_t *sample;      /* by merged node: a node of the file that names it */
	uint64_t largest;      /* the most that a tree held */
};

void massif_merge(const struct massif_file *f, struct massif_merged *out);
void massif_merged_deinit(struct massif_merged *m);

/* The one caller of @node that holds nearly all of it; 0 = none. */
uint32_t massif_merged_only_caller(const struct massif_merged *m, uint32_t node);

/* The function of @node of the merged tree, and where it is: NULL if that is not to be shown. */
void massif_merged_name(const struct massif_merged *m, uint32_t node, char **function_out,
			char **location_out);

#endif
