/*
 * The sources that a session may trace, each with its own profile:
 *
 *	source   counts                                   unit
 *	heap     blocks of malloc and its like             bytes
 *	brk      growth of the program break, byte ranges  bytes
 *	mmap     mapped memory, ranges                     bytes
 *	faults   page faults, only counted                 pages (of 4096 bytes)
 */
#ifndef PTMEM_SOURCE_KIND_H
#define PTMEM_SOURCE_KIND_H

#include "base/types.h"

enum source_kind { SOURCE_HEAP, SOURCE_BRK, SOURCE_MMAP, SOURCE_FAULTS, SOURCE_COUNT };

struct source_info {
	const char *name;   /* as in --trace and file names */
	const char *title;  /* of a picture */
	const char *unit;   /* "bytes" or "pages": a page counts as 4096 bytes in the profile */
};
extern const struct source_info source_info[SOURCE_COUNT];

/* The part of massif file names; NULL = none. */
const char *source_in_massif(enum source_kind kind);
/* The same for folded stacks and flame graphs if the sources @traced (bits) are traced. */
const char *source_in_paths(uint32_t traced, enum source_kind kind);

#endif
