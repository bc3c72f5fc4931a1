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
#ifndef PTMEM_OUTPUT_PATTERN_H
#define PTMEM_OUTPUT_PATTERN_H

#include "base/types.h"

struct pattern_values {
	uint32_t pid;
	uint32_t *sequence; /* the last number used for %n, initially 0; incremented at each %n */
	uint32_t part;      /* of a file in parts; 0: it is not */
	const char *dir;    /* the directory for relative names; NULL = leave them relative */
};

/*
 * 0 if @pattern can be expanded now, else -EINVAL with *@why_out: the error in Valgrind's words
 * (doc/massif.md section 2.9), with a line feed between lines. The caller frees it.
 */
int pattern_check(const char *pattern, char **why_out);

/*
 * Expands @pattern into *@path_out, which the caller frees. -EINVAL with *@why_out like
 * pattern_check; then the sequence is unchanged.
 */
int pattern_expand(const char *pattern, const struct pattern_values *values, char **path_out,
		   char **why_out);

#endif
