/* For a ptmem that stops itself, and is continued by another process. */
#ifndef PTMEM_TRACEE_CONTROL_SELF_STOP_H
#define PTMEM_TRACEE_CONTROL_SELF_STOP_H

#include <stdbool.h>
#include <sys/types.h>

struct target;

/* From now on a SIGCONT stays pending, so that its sender can be asked for. */
void self_stop_hold_continue(void);
/* The process whose SIGCONT is pending, which is taken; 0: none is. */
pid_t self_stop_continued_by(void);
/* Removes the blocked signal @sig from the pending ones. */
void self_stop_discard(int sig);

/*
 * Handles all pending stops, so that afterwards SIGCHLD is pending only if there is a new one, for
 * which a watcher wakes ptmem. False: there may be more, or there is other work to do before ptmem
 * stops.
 */
bool self_stop_serve_pending(struct target *t);

#endif
