/*
 * The inlined calls of one compilation unit by address.
 *
 * Only where they lie is kept; names and call sites are read from the DIE when an
 * address is found in one, for few of the many are ever asked for.
 */
#ifndef PTMEM_SYMBOLS_INLINES_H
#define PTMEM_SYMBOLS_INLINES_H

#include <elfutils/libdw.h>

#include "symbols/ranges.h"

struct inline_site {
	Dwarf_Off die;  /* offset of its DW_TAG_inlined_subroutine in .debug_info */
	uint32_t depth; /* nesting in the unit's tree: the higher, the further in */
};

struct inlines {
	struct inline_site *data;
	size_t count, capacity;
	struct ranges ranges; /* value = index into data */
	size_t die_count;     /* DIEs examined, a measure of libdw's memory */
};

/* What an inlined call says of itself. */
struct inline_call {
	char *name;       /* of the function (die_name.h), the caller's; NULL = none */
	uint64_t file;    /* number of the caller's file */
	uint32_t line;    /* of the call; 0 = unknown */
};

/* Walks the tree below @cu_die. */
void inlines_init(struct inlines *l, Dwarf_Die *cu_die);
void inlines_deinit(struct inlines *l);

/* The DIEs of the inlined calls at @addr, innermost first, up to @max; returns their number. */
size_t inlines_find(const struct inlines *l, uint64_t addr, Dwarf_Off *dies_out, size_t max);

void inline_call_read(Dwarf_Die *die, bool no_demangle, struct inline_call *call_out);

#endif
