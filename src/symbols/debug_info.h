/*
 * Source locations of one object by address, from its DWARF: the line table and the inlined calls
 * of each compilation unit, indexed at the first look-up in the unit. DWARF is untrusted: broken
 * parts are skipped, and every loop that follows references is bounded.
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
 * the real function, without a name. Always at least one. Unknown locations are left empty.
 */
void debug_info_find(struct debug_info *d, uint64_t vaddr, bool no_inline,
		     struct symbol_frames *frames_out);

#endif
