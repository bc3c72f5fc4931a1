/*
 * What every output format is given: a profile (or a moment of it), the names of
 * its addresses, and the words of its header. A format is one file with its
 * grammar at its head and one function that writes to a stream.
 *
 * Knows nothing of targets or of unwinding.
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
	const char *command;     /* program and arguments, one blank between */
	double threshold;        /* percent */
	enum memory_kind memory; /* what the profile counts */
	uint32_t pid;
	uint32_t cut_frame;      /* the outermost frame of stacks that are not whole; 0 = none */
	/*
	 * None: base names of source files. Else their paths,
	 * cut after the first of these texts that occurs.
	 */
	const char *const *fullpath_after;
	size_t fullpath_after_count;
};

#endif
