/*
 * Whether a file's CFI may be given to libdw, which trusts two things too much:
 * it makes room for whatever register an instruction names (gigabytes), and it
 * saves a chosen number of states.
 */
#ifndef PTMEM_UNWIND_CFI_CHECK_H
#define PTMEM_UNWIND_CFI_CHECK_H

#include <libelf.h>

#include "base/types.h"

/* Checks all of .eh_frame and that .eh_frame_hdr leads to nothing else. False: do not use it. */
bool cfi_check_eh_frame(Elf *elf);

/* The same for .debug_frame; true too when there is none. */
bool cfi_check_debug_frame(Elf *elf);

#endif
