/*
 * What a session may trace, each with a profile of its own:
 *
 *	source   counts                                   unit
 *	heap     blocks of malloc and its like             bytes
 *	brk      growth of the program break, byte ranges  bytes
 *	mmap     what is mapped and not unmapped, ranges   bytes
 *	faults   page faults, only counted                 pages (of 4096 bytes)
 */
#ifndef PTMEM_SOURCE_KIND_H
#define PTMEM_SOURCE_KIND_H

#include "base/types.h"

enum source_kind { SOURCE_HEAP, SOURCE_BRK, SOURCE_MMAP, SOURCE_FAULTS, SOURCE_COUNT };

struct source_info {
	const char *name;   /* as in --trace and in file suffixes */
	const char *title;  /* of a picture */
	const char *unit;   /* "bytes" or "pages": a page counts its 4096 bytes in the profile */
};
extern const struct source_info source_info[SOURCE_COUNT];

/* What is inserted into the names of massif files: NULL = nothing. */
const char *source_in_massif(enum source_kind kind);
/* The same for folded stacks and flame graphs, where the sources @traced are (bits). */
const char *source_in_paths(uint32_t traced, enum source_kind kind);

#endif
