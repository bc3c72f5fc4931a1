/*
 * A note (elf(5)) that marks the executables of ptmem, whatever their build, version or name; it is
 * loaded with them, so that strip(1) leaves it.
 */
#ifndef PTMEM_BASE_ELF_MARKER_H
#define PTMEM_BASE_ELF_MARKER_H

#include <sys/types.h>

#include "base/types.h"

/*
 * Whether process @pid executes a file with this note, which may be deleted meanwhile; false if
 * that is not permitted.
 */
bool elf_marker_is_in(pid_t pid);

#endif
