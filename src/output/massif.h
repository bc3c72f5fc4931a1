/*
 * Massif files (massif.c has the grammar), their tree lines, and xtrees, which are based on them
 * (xtree.c).
 */
#ifndef PTMEM_OUTPUT_MASSIF_H
#define PTMEM_OUTPUT_MASSIF_H

#include <stdio.h>

#include "output/report.h"
#include "output/report_tree.h"
#include "profile/flows.h"

struct report;
struct snapshot;

/*
 * The massif.out format, doc/massif.md section 1: all snapshots of the profile, or only @now, its
 * current state. 0 or -errno.
 */
int massif_write(FILE *file, const struct report *r, const struct snapshot *now);

/* The tree lines of a massif file, for formats based on them. */

struct massif_tree {
	const struct report *report;
	struct report_tree *tree;
	struct report_leaves leaves;
	uint64_t limit;   /* smaller children go into the aggregate line; 0 = none */
	const char *root; /* text of the first line */
};

/* 0 or -errno of the first failed write. */
int massif_write_tree(FILE *file, const struct massif_tree *t);

/*
 * An xtree: memory by call path, in the form of Callgrind or of Massif
 * (doc/massif.md 2.15). Its stacks are complete: no alloc-fns, no ignore-fns, Massif's recording
 * depth; cut below main.
 */

struct xtree_options {
	bool is_massif;      /* use Massif's form */
	bool has_whole_names; /* write each name in full, not as a number after its first use */
	uint64_t time_ms;    /* duration, for Massif's form */
};

/*
 * Writes @f, whose nodes are in @r's call tree; @r->filter must come from filter_new_whole. 0 or
 * -errno of the first failed write.
 */
int xtree_write(FILE *file, const struct report *r, const struct flows *f,
		const struct xtree_options *o);

/* Whether a file of this name is in Massif's form. */
bool xtree_is_massif_name(const char *path);

#endif
