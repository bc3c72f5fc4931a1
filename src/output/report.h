/*
 * The input of every output format: a profile (or a moment of it), names for its addresses, the
 * texts for its header, and the kind of memory that it counts, by which readers recognize a massif
 * file. A format is one file with its grammar at the top and one function that writes to a stream.
 * Independent of targets and unwinding.
 */
#ifndef PTMEM_OUTPUT_REPORT_H
#define PTMEM_OUTPUT_REPORT_H

#include <stdio.h>

#include "base/types.h"
#include "profile/profile.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"

/*
 * What a profile counts, and the text of a massif tree's root that identifies it. Readers recognize
 * the text in parentheses.
 */

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

/*
 * The input of every output format: a profile (or a moment of it), names for its addresses, and the
 * texts for its header. A format is one file with its grammar at the top and one function that
 * writes to a stream. Independent of targets and unwinding.
 */

struct report {
	struct profile *profile;
	const struct filter *filter;
	/* Names of frame @frame of the profile's call tree (as symbols_find). Never NULL. */
	const struct symbol *(*symbol)(void *ctx, uint32_t frame, enum symbol_part part);
	void *symbol_ctx;
	const char *desc;        /* options as given, "(none)" if none */
	const char *command;     /* program and arguments, separated by spaces */
	double threshold;        /* percent */
	enum memory_kind memory; /* kind of memory that the profile counts */
	const struct my_code *my_code; /* --my-code; NULL = not given */
	uint32_t pid;
	uint32_t cut_frame;      /* the outermost frame of incomplete stacks; 0 = none */
	/*
	 * Empty: base names of source files. Otherwise their paths, without the part up to the
	 * first of these texts that occurs.
	 */
	const char *const *fullpath_after;
	size_t fullpath_after_count;
};

#endif
