/*
 * How much of blocks was not touched for a time. A page that was touched may have several blocks:
 * which of them was is not known.
 */
#ifndef PTMEM_INSPECT_COLD_H
#define PTMEM_INSPECT_COLD_H

#include "base/types.h"
#include "tracee/os/accessed.h"

/* Bytes of blocks. */
struct cold_bytes {
	uint64_t cold;   /* on pages that were not touched, or were never there */
	uint64_t shared; /* on pages of which others were perhaps touched: they may be cold, too */
};

/* For [@addr, @addr + @size), a block. *i is where the last one ended: fast if calls ascend. */
struct cold_bytes cold_bytes_of(const struct touched_pages *p, size_t *i, taddr_t addr,
				uint64_t size);

#endif
