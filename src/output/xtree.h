/*
 * An xtree: memory by call path, in the form of Callgrind or of Massif
 * (spec/massif.md 2.15). Its stacks are whole: no alloc-fns, no ignore-fns, the
 * depth of what Massif records; cut below main.
 */
#ifndef PTMEM_OUTPUT_XTREE_H
#define PTMEM_OUTPUT_XTREE_H

#include "output/writer.h"
#include "profile/flows.h"

struct xtree_options {
	bool is_massif;      /* the form of Massif */
	bool has_whole_names; /* each name in full at each place, not as a number after its first */
	uint64_t time_ms;    /* since the start, for the form of Massif */
};

/*
 * Writes @f, whose nodes are of @r's call tree; @r->filter must be one made by
 * filter_new_whole. 0 or -errno of the first failed write.
 */
int xtree_write(FILE *file, const struct report *r, const struct flows *f,
		const struct xtree_options *o);

/* Whether a file of this name has the form of Massif. */
bool xtree_is_massif_name(const char *path);

#endif
