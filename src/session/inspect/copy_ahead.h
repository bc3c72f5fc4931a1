/*
 * Copies the memory of a process while it is running, before it is stopped for an inspection or a
 * leak check, so that it is stopped only for what it writes meanwhile.
 */
#ifndef PTMEM_SESSION_INSPECT_COPY_AHEAD_H
#define PTMEM_SESSION_INSPECT_COPY_AHEAD_H

#include <sys/types.h>

#include "malloc/memory_copy.h"

struct options;
struct registry;
struct run;
struct session;

/*
 * Processes of how many bytes are copied, by --inspect-copy. "auto" is a fourth of the memory that
 * is available now, since a process that goes on should be stopped for a short time only. Where
 * the copy would be made during the stop, and nothing but the stop is shorter by it
 * (@is_stopped), it is 64 MiB.
 */
uint64_t copy_ahead_most(const struct options *o, bool is_stopped);

/*
 * Copies the memory of @pid into @copy, and again what it has written, until little is left or it
 * writes as fast as it is copied. *written_out: closed if nothing was copied, because there is
 * little memory, or the kernel or the process does not allow it, which is logged.
 */
void copy_ahead(struct memory_copy *copy, struct registry *registry, pid_t pid,
		struct written_pages *written_out);

/* The memory of a session's process, for its next stop. */
struct ahead_copy {
	struct memory_copy copy;
	struct written_pages written; /* since it was copied ahead; closed = it was not */
	bool is_used;                 /* it has what was there at a stop before */
};

/*
 * Prepares the copies of all profiled processes, or of address space @only, that are not larger
 * than --inspect-copy: session_end.ahead. Events are served meanwhile; of the sink's callbacks only
 * poll may call this. Processes may have ended, and their sessions, too.
 */
void copy_ahead_sessions(struct run *run, uint32_t only);
/* For the next stop of @s; NULL = there is none. */
struct ahead_copy *copy_ahead_of(const struct session *s);
/* At that stop: pages, and those of them that are @unchanged since they were copied. -errno. */
int copy_ahead_pages(const struct ahead_copy *a, pid_t reader, struct resident *pages_out,
		     struct copy_ranges *unchanged_out);
/* After the stop: the process's writes are not watched any more. */
void copy_ahead_unwatch(struct session *s);
/* What was read from the copy is not needed any more. */
void copy_ahead_forget(struct session *s);

#endif
