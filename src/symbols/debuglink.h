/*
 * Where the debug information of a stripped file lies: separate debug files by
 * build-id and by .gnu_debuglink, and the common file that dwz splits off.
 */
#ifndef PTMEM_SYMBOLS_DEBUGLINK_H
#define PTMEM_SYMBOLS_DEBUGLINK_H

#include <elfutils/libdw.h>

#include "base/elf_file.h"

/* The roots that are searched by default. */
#define DEBUGLINK_DIRS "/usr/lib/debug"

/*
 * The separate debug file of @file, opened (the caller releases it), or NULL. @dirs:
 * colon-separated roots. Looks for ROOT/.build-id/xx/yyyy.debug, then for the name in
 * .gnu_debuglink next to the file, in .debug next to it, and in ROOT/its directory; a file
 * counts only with the right build-id or, failing that, checksum.
 */
struct elf_file *debuglink_find(struct elf_file *file, const char *dirs);

/* The file that .gnu_debugaltlink of @dwarf, read from @file, names; as above. */
struct elf_file *debuglink_find_alt(const struct elf_file *file, Dwarf *dwarf, const char *dirs);

#endif
