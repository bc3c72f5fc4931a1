/*
 * The most informative call sites of a massif file, the areas of its picture. The direct callers of
 * malloc are often the same few wrappers (xmalloc, sqlite3Malloc), so a site is replaced by its
 * callers as long as they split it into parts worth showing. Sites are disjoint: their sum never
 * exceeds the heap.
 */
#ifndef PTMEM_REPORT_MASSIF_SITES_H
#define PTMEM_REPORT_MASSIF_SITES_H

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

#endif
