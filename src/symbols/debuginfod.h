/*
 * Debug files by build-id from the servers that DEBUGINFOD_URLS names, through libdebuginfod, which
 * is loaded when it is needed and has a cache of its own. A child process does the work, so that no
 * server can hang or crash its caller. What it finds is not verified.
 */
#ifndef PTMEM_SYMBOLS_DEBUGINFOD_H
#define PTMEM_SYMBOLS_DEBUGINFOD_H

#include <stddef.h>

#include "base/types.h"

struct debuginfod_request {
	const uint8_t *build_id;
	size_t build_id_size;
	const char *name;      /* of the object, for messages */
};

struct debuginfod_ops {
	/* the debug file of request @index is at @path */
	void (*found)(void *ctx, size_t index, const char *path);
	bool (*should_stop)(void *ctx); /* asked ten times a second */
	void *ctx;
};

/* Whether the environment names servers. */
bool debuginfod_is_configured(void);

/*
 * Asks for each of @count debug files, and returns when the last one has arrived, when nothing has
 * arrived for DEBUGINFOD_TIMEOUT seconds (10 if not set), or when it should stop. On a terminal a
 * line shows the progress.
 */
void debuginfod_fetch(const struct debuginfod_request *request, size_t count,
		      const struct debuginfod_ops *ops);

#endif
