/*
 * Where the functions of an ELF file lie, by its symbols and the CFI that the table of
 * .eh_frame_hdr names (LSB Core, 10.6.2), for code that must be read from a start.
 *
 *	start               end
 *	|---- a function ----|----- a gap -----|---- the next function ----
 */
#ifndef PTMEM_BASE_ELF_FUNCTIONS_H
#define PTMEM_BASE_ELF_FUNCTIONS_H

#include "base/elf_file.h"
#include "base/vec.h"

enum elf_function_kind {
	ELF_FUNCTION,
	/* of a section of code: padding, data between code, code without symbol and CFI */
	ELF_GAP,
	ELF_NO_CODE, /* headers, and sections of data next to code in one segment */
};

struct elf_function {
	/* in an executable segment; where the end is unknown: the next one's start */
	uint64_t start, end;
	enum elf_function_kind kind;
};

struct elf_functions {
	VEC(struct elf_function) list; /* ascending, disjoint */
};

/* The caller deinits @out->list. */
void elf_functions_find(struct elf_file *file, struct elf_functions *out);

#endif
