/*
 * Copies the memory of a process while it is running, before it is stopped for an inspection, so
 * that it is stopped only for what it writes meanwhile.
 */
#ifndef PTMEM_SESSION_INSPECT_COPY_AHEAD_H
#define PTMEM_SESSION_INSPECT_COPY_AHEAD_H

#include <sys/types.h>

struct memory_copy;
struct registry;
struct written_pages;

/*
 * Copies the memory of @pid into @copy, and again what it has written, until little is left or it
 * writes as fast as it is copied. *written_out: closed if nothing was copied, because there is
 * little memory, or the kernel or the process does not allow it, which is logged.
 */
void copy_ahead(struct memory_copy *copy, struct registry *registry, pid_t pid,
		struct written_pages *written_out);

#endif
