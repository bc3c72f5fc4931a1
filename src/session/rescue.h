/*
 * A result that cannot be written to its file (full disk, removed directory) is written elsewhere.
 */
#ifndef PTMEM_SESSION_RESCUE_H
#define PTMEM_SESSION_RESCUE_H

struct result {
	const char *what; /* "profile", for messages */
	const char *name; /* of its file elsewhere */
	int (*write)(const char *path, const void *ctx); /* whole or not at all: 0 or -errno */
	const void *ctx;
};

/* Writes @r to @path. If it cannot be: -errno, after a message where it is instead. */
int rescue_write(const struct result *r, const char *path);

#endif
