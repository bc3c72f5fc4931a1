/*
 * A package of .dwo files (.dwp) beside a program: dwp(1), llvm-dwp(1), rustc -C
 * split-debuginfo=packed. Hides its index, and that libdw 0.188 only reads single .dwo files.
 */
#ifndef PTMEM_SYMBOLS_DEBUG_PACKAGE_H
#define PTMEM_SYMBOLS_DEBUG_PACKAGE_H

#include <elfutils/libdw.h>

#include "base/elf_file.h"
#include "base/types.h"

struct debug_package;

/* PATH.dwp of the file at PATH; NULL: there is none, or it cannot be read. */
struct debug_package *debug_package_open(const struct elf_file *file);
void debug_package_free(struct debug_package *p); /* may be NULL */

/*
 * The unit that has the tree of @cu_die, a skeleton; it is valid as long as @p, and knows nothing
 * of addresses, which are in the skeleton's file. False: it is not in the package.
 */
bool debug_package_find(struct debug_package *p, Dwarf_Die *cu_die, Dwarf_Die *split_out);

#endif
