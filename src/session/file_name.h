/*
 * The name of an output file, and the rule for what is inserted into it: whatever distinguishes the
 * file from others goes before the extension, each part after a dot.
 *
 *	name           + source, pid, number
 *	f.massif       f.mmap.4711.1.massif
 *	f              f.mmap.4711.1
 *	massif.out.42  massif.out.42.mmap.1      (digits alone are no extension)
 *	-, /dev/null   unchanged: whatever is not a regular file takes all outputs
 *
 * Knows nothing of options or sessions.
 */
#ifndef PTMEM_FILE_NAME_H
#define PTMEM_FILE_NAME_H

#include "base/types.h"

/* What is inserted; all zero = nothing. */
struct file_name_parts {
	const char *source; /* NULL = none */
	uint32_t pid;       /* 0 = none */
	unsigned number;    /* 0 = none */
};

/* @path with @parts; the caller frees it. */
char *file_name_insert(const char *path, const struct file_name_parts *parts);

/* Whether @path takes several outputs, one after the other: "-", a FIFO, a device. */
bool file_name_is_shared(const char *path);

/* Whether @pattern has one of the placeholders in @letters, "pn" say. */
bool file_name_has(const char *pattern, const char *letters);

#endif
