/*
 * What a profile counts, and the text of a massif tree's root that identifies it. Readers recognize
 * the text in parentheses.
 */
#ifndef PTMEM_OUTPUT_MEMORY_KIND_H
#define PTMEM_OUTPUT_MEMORY_KIND_H

#include "base/types.h"

enum memory_kind {
	MEMORY_HEAP,   /* blocks of malloc and its relatives */
	MEMORY_PAGES,  /* --pages-as-heap: all mapped pages */
	MEMORY_BRK,    /* growth of the program break */
	MEMORY_MAPPED, /* memory mapped by mmap */
	MEMORY_FAULTS, /* pages touched for the first time */
	MEMORY_KINDS,
};

/* "(heap allocation functions) malloc/new/new[], --alloc-fns, etc." */
const char *memory_kind_root(enum memory_kind kind);

/* From the first @size bytes at @root, with or without leading spaces; MEMORY_HEAP if unknown. */
enum memory_kind memory_kind_of_root(const char *root, size_t size);

/* "heap blocks", "page faults": name of the counted items. */
const char *memory_kind_name(enum memory_kind kind);

#endif
