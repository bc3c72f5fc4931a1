/*
 * The names of output files. Parts that distinguish a file from others are inserted before the
 * extension, each after a dot.
 *
 *	name           + source, pid, number
 *	f.massif       f.mmap.4711.1.massif
 *	f              f.mmap.4711.1           (f.mmap.4711.003.1: in part 3)
 *	massif.out.42  massif.out.42.mmap.1      (digits alone are no extension)
 *	-, /dev/null   unchanged: all outputs go to one file that is not a regular one
 *
 * Independent of options and sessions.
 */
#ifndef PTMEM_FILE_NAME_H
#define PTMEM_FILE_NAME_H

#include "base/types.h"

/* The parts to insert; all zeros = none. */
struct file_name_parts {
	const char *source; /* NULL = none */
	uint32_t pid;       /* 0 = none */
	unsigned number;    /* 0 = none */
	unsigned part;      /* with three digits or more; 0 = none */
};

/* @path with @parts; the caller frees it. */
char *file_name_insert(const char *path, const struct file_name_parts *parts);

/* Whether @path takes several outputs in a row: "-", a FIFO, a device. */
bool file_name_is_shared(const char *path);

/* Whether @pattern contains a placeholder with one of @letters, e.g. "pn". */
bool file_name_has(const char *pattern, const char *letters);

#endif
