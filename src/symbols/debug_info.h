/*
 * Source places of one object by address, from its DWARF: the line table and the
 * inlined calls, indexed per compilation unit when the first address in it is asked for.
 *
 * DWARF is untrusted: what is broken is left out; no loop follows references
 * without a bound.
 */
#ifndef PTMEM_SYMBOLS_DEBUG_INFO_H
#define PTMEM_SYMBOLS_DEBUG_INFO_H

#include "base/elf_file.h"
#include "symbols/string_pool.h"
#include "symbols/symbols.h"

struct debug_info;

/* A growing list of frames, innermost first. */
struct symbol_frames {
	struct symbol_frame *data;
	size_t count, capacity;
};

/*
 * For the code of @file, whose DWARF lies in @source (@file itself or its debug file;
 * both must outlive the result). Names go to @strings. Of @options debug_dirs (as debuglink_find;
 * outlives the result, too) and no_demangle count. Never NULL; without DWARF it knows nothing.
 */
struct debug_info *debug_info_new(const struct elf_file *file, struct elf_file *source,
				  struct string_pool *strings,
				  const struct symbols_options *options);
void debug_info_free(struct debug_info *d);

/*
 * Appends the frames at @vaddr: the inlined functions with their names (none if
 * @no_inline), and last the real function, without a name. Always at least one;
 * places that are not known stay empty.
 */
void debug_info_find(struct debug_info *d, uint64_t vaddr, bool no_inline,
		     struct symbol_frames *frames_out);

#endif
