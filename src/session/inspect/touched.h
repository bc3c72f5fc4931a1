/*
 * --cold: what a process touches while ptmem waits (tracee/inject/touched_pages.h). It is stopped
 * for a moment at the start, and runs undisturbed until the end.
 */
#ifndef PTMEM_SESSION_INSPECT_TOUCHED_H
#define PTMEM_SESSION_INSPECT_TOUCHED_H

#include <sys/types.h>

#include "tracee/control/attach.h"

struct registry;

/*
 * Starts, and waits for *seconds or until SIGINT or SIGTERM: then it becomes the time that has
 * passed. 0; or -errno after a message, but none if *problem_out is not ATTACH_OK: then as
 * target_attach.
 */
int touched_wait(struct registry *registry, pid_t pid, double *seconds,
		 enum attach_problem *problem_out, long *detail_out);

#endif
