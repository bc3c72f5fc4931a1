/* Detaches from one program while others continue. */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_LEAVE_H
#define PTMEM_TRACEE_CONTROL_TARGET_LEAVE_H

#include <sys/types.h>

struct target;

/* An attach to @pid failed half-way: undoes it. Other processes continue. */
void target_undo_attach(struct target *t, pid_t pid);
/*
 * Detaches from a program that corrupted the memory it shares with us, if there is one. Not to be
 * called while a stop is handled.
 */
void target_leave_corrupt(struct target *t);

#endif
