/*
 * The largest call sites at the peak of a profile, for the summary: at the exact peak if there is a
 * history, otherwise at the peak's snapshot, which is within --peak-inaccuracy of it.
 */
#ifndef PTMEM_LARGEST_H
#define PTMEM_LARGEST_H

#include "output/call_sites.h"

#define LARGEST_SITES 3

struct largest {
	struct call_site_sum site[LARGEST_SITES];
	size_t count;   /* 0 if there was no peak */
	uint64_t bytes; /* of all sites at the peak */
	double error[LARGEST_SITES]; /* of each site's bytes; 0 unless they are estimates */
};

void largest_find(const struct report *r, struct largest *out);
void largest_print(const struct largest *l);
void largest_deinit(struct largest *l);

#endif
