/*
 * The file of a result: its name, writing it whole or not at all, and the place where it is
 * written instead if that fails (full disk, removed directory).
 */
#ifndef PTMEM_SESSION_RESULT_FILE_H
#define PTMEM_SESSION_RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/types.h"

/*
 * Writes a result that cannot be written to its file (full disk, removed directory) somewhere
 * else.
 */

struct result {
	const char *what; /* "profile", for messages */
	const char *name; /* of its file elsewhere */
	int (*put)(FILE *file, const void *ctx); /* 0 or -errno; errors of the stream are seen */
	const void *ctx;
};

/* Writes @r to @path, whole or not at all: 0 or -errno. */
int result_write(const struct result *r, const char *path);

/* The same. If it cannot be: -errno, after a message where it is instead. */
int fallback_write(const struct result *r, const char *path);

/*
 * The same for one of several, which are never written to a FIFO or device: the place instead is in
 * a directory called @directory, which is said only with -v if @is_quiet.
 */
int fallback_write_in(const struct result *r, const char *path, const char *directory,
		    bool is_quiet);

/* A name for such a directory that no other ptmem has; the caller frees it. */
char *fallback_directory_name(void);
/* Where file @name is in that @directory; NULL = nowhere. The caller frees it. */
char *fallback_find(const char *directory, const char *name);
/* Removes a file that rescue_find found, and its directory if it was the last one there. */
void fallback_remove(const char *path);

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
