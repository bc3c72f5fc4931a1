/*
 * Whether a function takes part in the exceptions that pass through it, as the program's own
 * unwinder sees it.
 */
#ifndef PTMEM_UNWIND_PERSONALITY_H
#define PTMEM_UNWIND_PERSONALITY_H

#include <libelf.h>

#include "base/types.h"

/*
 * Whether .eh_frame_hdr of @elf maps @vaddr to an entry of .eh_frame without a personality routine.
 * Also false if there is no such table or entry. Does not check that the entry extends to @vaddr.
 */
bool personality_is_absent(Elf *elf, uint64_t vaddr);

#endif
