/*
 * The unwind information of one ELF file: rows of .eh_frame and .debug_frame, in the file or a
 * separate debug file, and, where there are none, the machine code. Addresses are those of the
 * file.
 *
 * The opened tables are stored in elf_file.cfi_user and live as long as the file.
 */
#ifndef PTMEM_UNWIND_CFI_H
#define PTMEM_UNWIND_CFI_H

#include <elfutils/libdw.h>

#include "base/types.h"

struct elf_file;
struct known_rules;

/* Reads now what cfi_find and cfi_code_start otherwise read when they are first called. */
void cfi_prepare(struct elf_file *file);

/* The row that covers @vaddr; the caller frees it. NULL if there is none, or it is malformed. */
Dwarf_Frame *cfi_find(struct elf_file *file, uint64_t vaddr);

/* The same, from the file's .eh_frame only. */
Dwarf_Frame *cfi_find_eh_frame(struct elf_file *file, uint64_t vaddr);

/*
 * The code of the file at @vaddr: *size_out bytes, at least @want unless the segment ends before or
 * @want is above 64 MiB. NULL if there is no code. Valid until the next call for the file.
 */
const uint8_t *cfi_code(struct elf_file *file, uint64_t vaddr, uint64_t want, size_t *size_out);

enum cfi_start {
	CFI_START_NONE,     /* nothing found */
	CFI_START_FUNCTION, /* the entry of the function that contains the address */
	CFI_START_GAP,      /* the entry of an earlier function, without symbols between */
	CFI_START_SOMEWHERE, /* code before it, perhaps in the middle of an instruction */
};

/* Finds where to start decoding code that leads to @vaddr. */
enum cfi_start cfi_code_start(struct elf_file *file, uint64_t vaddr, uint64_t *start_out);

/* The rules compiled for the file so far. Valid as long as the file. */
struct known_rules *cfi_known_rules(struct elf_file *file);

#endif
