/*
 * The input of every output format: a profile (or a moment of it), names for its addresses, and the
 * texts for its header. A format is one file with its grammar at the top and one function that
 * writes to a stream. Independent of targets and unwinding.
 */
#ifndef PTMEM_OUTPUT_WRITER_H
#define PTMEM_OUTPUT_WRITER_H

#include <stdio.h>

#include "output/memory_kind.h"
#include "profile/profile.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"

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
