/* The tree lines of a massif file, for formats based on them. */
#ifndef PTMEM_OUTPUT_MASSIF_TREE_H
#define PTMEM_OUTPUT_MASSIF_TREE_H

#include "output/report_tree.h"

struct massif_tree {
	const struct report *report;
	struct report_tree *tree;
	struct report_leaves leaves;
	uint64_t limit;   /* smaller children go into the aggregate line; 0 = none */
	const char *root; /* text of the first line */
};

/* 0 or -errno of the first failed write. */
int massif_write_tree(FILE *file, const struct massif_tree *t);

#endif
