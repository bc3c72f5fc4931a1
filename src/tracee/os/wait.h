/* Waiting for stops of traced threads. */
#ifndef PTMEM_TRACEE_OS_WAIT_H
#define PTMEM_TRACEE_OS_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

/* A wait status of thread @tid. */
struct wait_report {
	pid_t tid;
	int status;
};

/* Sleeps until a child stops or ends, at most @ms: false. SIGCHLD is blocked, so none is missed. */
bool wait_for_child(unsigned ms);

/*
 * Waits for a stop or the end of thread @tid, or of any if it is 0. A stop is not consumed: if
 * ptmem is killed while it serves the stop, the kernel still delivers the signal that the thread
 * had stopped for. (A consumed stop loses its signal with its tracer.) 0 or -errno; -EAGAIN:
 * @no_wait, and there is none.
 */
int wait_peek(pid_t tid, bool no_wait, struct wait_report *out);

#endif
