/* Waits for stops of traced threads. */
#ifndef PTMEM_TRACEE_OS_WAIT_H
#define PTMEM_TRACEE_OS_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

/* A wait status of thread @tid. */
struct wait_report {
	pid_t tid;
	int status;
};

/* Sleeps until a child stops or ends; false after @ms. SIGCHLD is blocked, so none is missed. */
bool wait_for_child(unsigned ms);

/*
 * Waits for a stop or the end of thread @tid, or of any thread if it is 0. Does not consume the
 * stop: if ptmem is killed while it handles the stop, the kernel still delivers the signal that the
 * thread had stopped for. (The signal of a consumed stop is lost with its tracer.) 0 or -errno;
 * -EAGAIN: @no_wait, and there is none.
 */
int wait_peek(pid_t tid, bool no_wait, struct wait_report *out);

#endif
