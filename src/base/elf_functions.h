/*
 * The functions of an ELF file, by its symbols and the search table of .eh_frame_hdr (LSB Core,
 * 10.6.2), for analyses that must decode code from a function's start.
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
	/* part of a code section: padding, data between code, code without symbol and CFI */
	ELF_GAP,
	ELF_NO_CODE, /* headers, and sections of data next to code in one segment */
};

struct elf_function {
	/* in an executable segment; an unknown end is the start of the next function */
	uint64_t start, end;
	enum elf_function_kind kind;
};

struct elf_functions {
	VEC(struct elf_function) list; /* ascending, disjoint */
};

/* The caller frees @out->list with vec_deinit. */
void elf_functions_find(struct elf_file *file, struct elf_functions *out);

#endif
