/*
 * Writes a result that cannot be written to its file (full disk, removed directory) somewhere
 * else.
 */
#ifndef PTMEM_SESSION_RESCUE_H
#define PTMEM_SESSION_RESCUE_H

#include <stdio.h>

struct result {
	const char *what; /* "profile", for messages */
	const char *name; /* of its file elsewhere */
	int (*put)(FILE *file, const void *ctx); /* 0 or -errno; errors of the stream are seen */
	const void *ctx;
};

/*
 * Writes @r to @path, whole or not at all. If it cannot be: -errno, after a message where it is
 * instead.
 */
int rescue_write(const struct result *r, const char *path);

#endif
