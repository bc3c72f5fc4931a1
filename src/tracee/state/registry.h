/*
 * What all address spaces of a run have in common: ELF files, each of which is opened once, and
 * the numbers that spaces and modules have got. Outlives all of these.
 */
#ifndef PTMEM_TRACEE_STATE_REGISTRY_H
#define PTMEM_TRACEE_STATE_REGISTRY_H

#include "base/elf_file.h"
#include "base/types.h"

struct registry { /* zeroed = empty */
	struct elf_files files;
	uint32_t last_space_id;
	uint32_t last_module_id;
};

#endif
