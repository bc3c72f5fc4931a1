/*
 * Writes a result that cannot be written to its file (full disk, removed directory) somewhere
 * else.
 */
#ifndef PTMEM_SESSION_RESCUE_H
#define PTMEM_SESSION_RESCUE_H

#include <stdbool.h>
#include <stdio.h>

struct result {
	const char *what; /* "profile", for messages */
	const char *name; /* of its file elsewhere */
	int (*put)(FILE *file, const void *ctx); /* 0 or -errno; errors of the stream are seen */
	const void *ctx;
};

/* Writes @r to @path, whole or not at all: 0 or -errno. */
int result_write(const struct result *r, const char *path);

/* The same. If it cannot be: -errno, after a message where it is instead. */
int rescue_write(const struct result *r, const char *path);

/*
 * The same for one of several, which are never written to a FIFO or device: the place instead is in
 * a directory called @directory, which is said only with -v if @is_quiet.
 */
int rescue_write_in(const struct result *r, const char *path, const char *directory,
		    bool is_quiet);

/* A name for such a directory that no other ptmem has; the caller frees it. */
char *rescue_directory_name(void);
/* Where file @name is in that @directory; NULL = nowhere. The caller frees it. */
char *rescue_find(const char *directory, const char *name);
/* Removes a file that rescue_find found, and its directory if it was the last one there. */
void rescue_remove(const char *path);

#endif
