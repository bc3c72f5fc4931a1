/* Output files that are complete or absent. */
#ifndef PTMEM_OUTPUT_OUTFILE_H
#define PTMEM_OUTPUT_OUTFILE_H

#include <stdio.h>

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

#endif
