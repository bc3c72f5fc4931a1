/*
 * What a leak check says of a call site besides its blocks: how old they are, and what holds them.
 */
#ifndef PTMEM_REPORT_LEAK_DETAILS_H
#define PTMEM_REPORT_LEAK_DETAILS_H

#include <stdio.h>

#include "base/alloc.h"
#include "recording/recording.h"

/* Of blocks of one call site: their ages in ms, or a chain that holds some. */
struct leak_detail {
	char *site;              /* as in tables */
	uint64_t least, most;
	const char *chain;       /* NULL: these are ages */
	uint64_t bytes, blocks;
};

struct leak_details {
	VEC(struct leak_detail) list; /* by site; ages first, then the chains with most bytes */
};

/* Those of leaks of @kind that are at least @older_ms old; of holders all. @r must outlive @d. */
void leak_details_find(struct leak_details *d, const struct recording *r, const char *kind,
		       double older_ms);
void leak_details_deinit(struct leak_details *d);

bool leak_details_have_holders(const struct leak_details *d);

/* ", 0.013 to 0.072 s old" in *@ages_out, which the caller frees; NULL: not known. */
void leak_details_ages(const struct leak_details *d, const char *site, char **ages_out);
/* A line for each of the three chains that hold most of @site. */
void leak_details_put_holders(FILE *out, const struct leak_details *d, const char *site);

#endif
