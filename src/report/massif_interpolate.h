/* The bytes of each call site at a snapshot without a tree, estimated from the nearest trees. */
#ifndef PTMEM_REPORT_MASSIF_INTERPOLATE_H
#define PTMEM_REPORT_MASSIF_INTERPOLATE_H

#include "report/massif_sites.h"

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
