/*
 * The inlined calls of one compilation unit by address. Only their ranges are kept. Names and call
 * sites are read from the DIE when an address is looked up, since few of them are needed.
 */
#ifndef PTMEM_SYMBOLS_INLINES_H
#define PTMEM_SYMBOLS_INLINES_H

#include <elfutils/libdw.h>

#include "symbols/ranges.h"

struct inline_site {
	Dwarf_Off die;  /* offset of its DW_TAG_inlined_subroutine in .debug_info */
	uint32_t depth; /* nesting in the unit's tree: higher = more deeply nested */
};

struct inlines {
	struct inline_site *data;
	size_t count, capacity;
	struct ranges ranges; /* value = index into data */
	size_t die_count;     /* number of DIEs examined, a measure of libdw's memory */
};

/* The attributes of an inlined call. */
struct inline_call {
	char *name;       /* name of the function (die_name.h), owned by the caller; NULL = none */
	char *plain;      /* its DW_AT_name; likewise */
	uint64_t file;    /* file number of the call */
	uint32_t line;    /* line of the call; 0 = unknown */
};

/* Indexes the tree below @cu_die. */
void inlines_init(struct inlines *l, Dwarf_Die *cu_die);
void inlines_deinit(struct inlines *l);

/*
 * Stores the DIEs of the inlined calls at @addr, innermost first, at most @max. Returns their
 * number.
 */
size_t inlines_find(const struct inlines *l, uint64_t addr, Dwarf_Off *dies_out, size_t max);

void inline_call_read(Dwarf_Die *die, bool no_demangle, struct inline_call *call_out);

#endif
