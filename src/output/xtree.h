/*
 * An xtree: memory by call path, in the form of Callgrind or of Massif
 * (doc/massif.md 2.15). Its stacks are complete: no alloc-fns, no ignore-fns, Massif's recording
 * depth; cut below main.
 */
#ifndef PTMEM_OUTPUT_XTREE_H
#define PTMEM_OUTPUT_XTREE_H

#include "output/writer.h"
#include "profile/flows.h"

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
