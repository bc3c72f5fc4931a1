/* Reads event files (events.h). */
#ifndef PTMEM_PROFILE_EVENTS_READ_H
#define PTMEM_PROFILE_EVENTS_READ_H

#include "profile/events.h"

struct events_reader_ops {
	void (*header)(void *ctx, const char *command, uint32_t pid, uint64_t start_ns);
	void (*module)(void *ctx, const struct events_module *m);
	void (*name)(void *ctx, const struct events_name *n);
	void (*value)(void *ctx, const char *key, const char *value);
	/* node: in the tree passed to events_read, or the one of restart */
	void (*event)(void *ctx, const struct event *ev);
	void (*thread_exit)(void *ctx, uint32_t thread);
	void (*end)(void *ctx, uint64_t time_ns);
	void *ctx;
	void (*sampling)(void *ctx, uint64_t interval, uint64_t seed);
	void (*total)(void *ctx, uint8_t function, const struct call_total *total);
	/*
	 * The file is cut, at @line: its writer died, or could write no more. NULL: that is an
	 * error. Else what is there has been read.
	 */
	void (*cut)(void *ctx, unsigned line);
	/*
	 * The process executed another program, of which all that follows is, beginning with a
	 * header. Returns the tree for its nodes. NULL: that is an error.
	 */
	struct calltree *(*restart)(void *ctx);
};

/*
 * Reads all of @file into @t and the callbacks. 0, or -EINVAL with *line_out and *why_out
 * (static).
 */
int events_read(FILE *file, struct calltree *t, const struct events_reader_ops *ops,
		unsigned *line_out, const char **why_out);

#endif
