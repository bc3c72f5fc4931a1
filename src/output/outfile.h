/* Output files: names with placeholders, and files that are complete or absent. */
#ifndef PTMEM_OUTPUT_OUTFILE_H
#define PTMEM_OUTPUT_OUTFILE_H

#include <stdio.h>

#include "base/types.h"

/*
 * Names of output files with placeholders (doc/massif.md section 1.6):
 *
 *	%p       pid of the profiled process
 *	%n       1, 2, ...: the next number at each occurrence; of a part its number: 001, ...
 *	%q{VAR}  environment variable, not expanded any further
 *	%%       a percent sign
 *
 * A relative name refers to a directory given by the caller, since the working directory may have
 * changed. The name "-" (standard output) stays "-".
 */

struct pattern_values {
	uint32_t pid;
	uint32_t *sequence; /* the last number used for %n, initially 0; incremented at each %n */
	uint32_t part;      /* of a file in parts; 0: it is not */
	const char *dir;    /* the directory for relative names; NULL = leave them relative */
};

/*
 * Expands @pattern into *@path_out, which the caller frees. -EINVAL with *@why_out, which the
 * caller frees: the error in Valgrind's words (doc/massif.md section 2.9), with a line feed between
 * lines; then the sequence is unchanged.
 */
int pattern_expand(const char *pattern, const struct pattern_values *values, char **path_out,
		   char **why_out);

/* Output files that are complete or absent. */

/*
 * An output file: written without a name (or under another one) in the same directory, then
 * renamed, so that it is complete or absent. "-" is standard output. A path that is not a regular
 * file (a FIFO, /dev/stdout) is written directly.
 */
struct outfile {
	FILE *file;
	char *path, *temporary; /* temporary name: NULL if written directly, or unnamed */
	int unnamed_fd;         /* of the unnamed file; -1 = it has a name */
};

int outfile_open(const char *path, struct outfile *out);
/* Flushes, closes, renames: 0 or -errno (nothing is left behind then). */
int outfile_commit(struct outfile *out);
void outfile_abort(struct outfile *out);

/*
 * All of these for what @put writes: 0 or -errno. @put returns 0 or -errno; errors of the stream
 * are seen. NULL: only checks that the file could be created.
 */
int outfile_put(const char *path, int (*put)(FILE *file, const void *ctx), const void *ctx);

/* Logs that @path cannot be written, and why: @err, or a link that is not followed. */
void outfile_log_error(const char *path, int err);

#endif
