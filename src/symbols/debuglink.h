/*
 * Finds the debug information of a stripped file: separate debug files by build-id and by
 * .gnu_debuglink, and the common file that dwz creates.
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
 * .gnu_debuglink next to the file, in .debug next to it, and in ROOT/its directory; a file is
 * accepted only if its build-id or, without one, its checksum matches. Each name is tried in the
 * root directory of @file, then in ours.
 */
struct elf_file *debuglink_find(struct elf_file *file, const char *dirs);

/* The same for the file at @path, if that is it by its build-id. */
struct elf_file *debuglink_open(struct elf_file *file, const char *path);

/* The file that .gnu_debugaltlink of @dwarf, read from @file, refers to; see above. */
struct elf_file *debuglink_find_alt(const struct elf_file *file, Dwarf *dwarf, const char *dirs);

#endif
