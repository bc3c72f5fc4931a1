/*
 * Address ranges that may nest or overlap, such as compilation units and inlined calls, and
 * look-ups of the ranges that contain an address.
 */
#ifndef PTMEM_SYMBOLS_DEBUG_INFO_H
#define PTMEM_SYMBOLS_DEBUG_INFO_H

#include <elfutils/libdw.h>

#include "base/elf_file.h"
#include "base/types.h"
#include "symbols/string_pool.h"
#include "symbols/symbols.h"

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t value;  /* for the caller */
	/* index + 1 of the nearest earlier range that may also contain lo; 0 = none */
	uint32_t parent;
};

struct ranges {
	struct range *data;
	size_t count, capacity;
	bool is_sorted;
};

/* Ignores empty ranges. */
void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, uint32_t value);

/* Sorts the ranges; call it between the last add and the first look-up. Of two equal ranges the one
 * with the higher value is the inner one. */
void ranges_sort(struct ranges *r);

/* The innermost (last to start) range that contains @addr, or NULL. */
const struct range *ranges_find(const struct ranges *r, uint64_t addr);

/* The next range outside of @inner that contains @addr, or NULL. */
const struct range *ranges_outer(const struct ranges *r, const struct range *inner, uint64_t addr);

void ranges_deinit(struct ranges *r);

/*
 * The inlined calls of one compilation unit by address. Only their ranges are kept. Names and call
 * sites are read from the DIE when an address is looked up, since few of them are needed.
 */

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
	char *name;       /* name of the function (inlines.c), owned by the caller; NULL = none */
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

/*
 * Source locations of one object by address, from its DWARF: the line table and the inlined calls
 * of each compilation unit, indexed at the first look-up in the unit. DWARF is untrusted: broken
 * parts are skipped, and every loop that follows references is bounded.
 */

struct debug_info;

/* A growing list of frames, innermost first. */
struct symbol_frames {
	struct symbol_frame *data;
	size_t count, capacity;
};

/*
 * Reads the DWARF of @source, which describes the code of @file: @file itself or its debug file;
 * both must outlive the result. Names are stored in @strings. Uses debug_dirs (as for
 * debuglink_find; must outlive the result, too) and no_demangle of @options. Never NULL; without
 * DWARF look-ups find nothing.
 */
struct debug_info *debug_info_new(const struct elf_file *file, struct elf_file *source,
				  struct string_pool *strings,
				  const struct symbols_options *options);
void debug_info_free(struct debug_info *d);

/*
 * Appends the frames at @vaddr: the inlined functions with their names (none with @no_inline), then
 * the real function, without a name. Always at least one. Unknown locations are left empty. Returns
 * whether the inlined functions are in what was found: false if a .dwo file is missing.
 */
bool debug_info_find(struct debug_info *d, uint64_t vaddr, bool no_inline,
		     struct symbol_frames *frames_out);

#endif
