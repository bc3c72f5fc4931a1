/*
 * What one ELF file knows about unwinding its code: rows of .eh_frame and
 * .debug_frame, its own or those of a separate debug file, and, where there are
 * none, the machine code. Addresses are those of the file.
 *
 * The opened tables hang on elf_file.cfi_user and live as long as the file.
 */
#ifndef PTMEM_UNWIND_CFI_H
#define PTMEM_UNWIND_CFI_H

#include <elfutils/libdw.h>

#include "base/types.h"

struct elf_file;
struct known_rules;

/* The row that covers @vaddr; the caller free()s it. NULL when there is none or it is broken. */
Dwarf_Frame *cfi_find(struct elf_file *file, uint64_t vaddr);

/* The same from .eh_frame of the file alone. */
Dwarf_Frame *cfi_find_eh_frame(struct elf_file *file, uint64_t vaddr);

/*
 * The executable bytes of the file from @vaddr on,
 * *size_out of them; NULL if it holds no code there.
 */
const uint8_t *cfi_code(struct elf_file *file, uint64_t vaddr, size_t *size_out);

enum cfi_start {
	CFI_START_NONE,     /* nothing near */
	CFI_START_FUNCTION, /* the entry of the function that holds the address */
	CFI_START_GAP,      /* the entry of some function before it, without symbols between */
	CFI_START_SOMEWHERE, /* code before it, perhaps in the middle of an instruction */
};

/* Where to start reading code that leads to @vaddr. */
enum cfi_start cfi_code_start(struct elf_file *file, uint64_t vaddr, uint64_t *start_out);

/* The rules that were compiled for the file. Valid as long as that. */
struct known_rules *cfi_known_rules(struct elf_file *file);

#endif
