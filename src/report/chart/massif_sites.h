/*
 * The most informative call sites of a massif file, the areas of its picture. The direct callers of
 * malloc are often the same few wrappers (xmalloc, sqlite3Malloc), so a site is replaced by its
 * callers as long as they split it into parts worth showing. Sites are disjoint: their sum never
 * exceeds the heap.
 */
#ifndef PTMEM_REPORT_CHART_MASSIF_SITES_H
#define PTMEM_REPORT_CHART_MASSIF_SITES_H

#include "report/massif_file.h"

#define MASSIF_SITES_MAX 7

struct massif_sites {
	size_t count;          /* 0 .. MASSIF_SITES_MAX, the largest first */
	char *function[MASSIF_SITES_MAX]; /* label of the site; owned */
	char *location[MASSIF_SITES_MAX]; /* "(file:line)" or the like; owned; may be NULL */
	/* [snapshot * MASSIF_SITES_MAX + site]; 0 if the snapshot has no tree */
	uint64_t *bytes;
};

void massif_sites_find(const struct massif_file *file, struct massif_sites *out);
void massif_sites_deinit(struct massif_sites *sites);

/* The bytes of each call site at a snapshot without a tree, estimated from the nearest trees. */

#define MASSIF_OTHER_SITES MASSIF_SITES_MAX /* index of everything outside of the sites */

/* The nearest snapshot from @s on, in steps of @step, whose tree has sites; SIZE_MAX = none. */
size_t massif_nearest_tree(const struct massif_file *f, size_t s, int step);

/*
 * The bytes of each site, and of all others, at snapshot @s; they add up to its heap. @x: position
 * of each snapshot on the time axis. All are 0 before the first tree.
 *
 * Between two trees each site changes from one value to the other. If the heap then has fewer
 * bytes, the difference is taken from the sites in proportion to what they lost from tree to tree
 * in the whole file, so a leak that never shrinks does not shrink here. If it has more, the
 * difference is added in proportion to what sites gained; after the last tree it belongs to other
 * sites.
 */
void massif_interpolate(const struct massif_file *f, const struct massif_sites *sites,
			const double *x, size_t s, double bytes_out[MASSIF_SITES_MAX + 1]);

#endif
