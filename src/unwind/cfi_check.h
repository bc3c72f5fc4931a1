/*
 * Whether a file's CFI is safe for libdw, which does not limit two things: the register numbers
 * that instructions name (it allocates that many, up to gigabytes), and the number of saved states.
 */
#ifndef PTMEM_UNWIND_CFI_CHECK_H
#define PTMEM_UNWIND_CFI_CHECK_H

#include <libelf.h>

#include "base/types.h"

/*
 * Checks .eh_frame completely, and that .eh_frame_hdr points to nothing else. False: do not use
 * them.
 */
bool cfi_check_eh_frame(Elf *elf);

/* The same for .debug_frame. True if there is none. */
bool cfi_check_debug_frame(Elf *elf);

#endif
