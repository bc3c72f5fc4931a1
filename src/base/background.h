/*
 * Work in a copy of this process (fork), which takes as long as it needs while the original goes
 * on. The copy sees everything as it was at that moment; what it changes is lost, except for files
 * and messages. It is no child of the original, whose waits for any child would report it.
 */
#ifndef PTMEM_BASE_BACKGROUND_H
#define PTMEM_BASE_BACKGROUND_H

#include "base/types.h"

struct background_job {
	int (*work)(void *ctx);    /* in the copy; the result, 0 or -errno */
	void *ctx;
	/* a socket that the copy needs, -1 = none: others are closed, so that their peers notice
	 * the end of the original */
	int socket;
};

/* Starts the copy. Returns a descriptor for background_result, or -errno. */
int background_start(const struct background_job *job);

/*
 * -EAGAIN: the copy is still working, unless @wait. 0: *out is the result, -ECHILD if it was
 * killed, and @fd is closed.
 */
int background_result(int fd, bool wait, int *out);

#endif
