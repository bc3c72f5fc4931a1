/* What holds the blocks of a leak check: from roots, which get names, along the blocks. */
#ifndef PTMEM_HOLDER_CHAINS_H
#define PTMEM_HOLDER_CHAINS_H

#include "output/leak_holders.h"
#include "output/writer.h"

struct final_scan;
struct root_places;

/*
 * The chains of all blocks of @scan, which has wants_holders and was run, that have a site: @site,
 * by block. The caller deinits and frees the result.
 */
struct leak_holders *holder_chains_find(const struct report *r, const struct final_scan *scan,
					const struct root_places *places, const uint32_t *site);

#endif
