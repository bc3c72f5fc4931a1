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
	bool is_pages;           /* pages-as-heap: the other root text */
	uint32_t pid;
	/*
	 * None: base names of source files. Else their paths,
	 * cut after the first of these texts that occurs.
	 */
	const char *const *fullpath_after;
	size_t fullpath_after_count;
};

/*
 * Where a file goes: written under another name in the same folder, then
 * renamed, so that it is whole or absent. "-" is standard output. A path that is
 * no regular file (a FIFO, /dev/stdout) is written directly.
 */
struct outfile {
	FILE *file;
	char *path, *temporary; /* temporary: NULL when written directly */
};

int outfile_open(const char *path, struct outfile *out);
/* Flushes, closes, renames: 0 or -errno (nothing is left behind then). */
int outfile_commit(struct outfile *out);
void outfile_abort(struct outfile *out);

/* The massif.out format, spec/massif.md section 1. 0 or -errno. */
int massif_write(FILE *file, const struct report *r);
/* The same with one snapshot, @now: the state of the profile now. */
int massif_write_now(FILE *file, const struct report *r, const struct snapshot *now);

#endif
