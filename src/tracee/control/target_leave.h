/* Leaving one program while others continue. */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_LEAVE_H
#define PTMEM_TRACEE_CONTROL_TARGET_LEAVE_H

#include <sys/types.h>

struct target;

/* An attach to @pid failed half-way: as if it had not been tried. Others continue. */
void target_undo_attach(struct target *t, pid_t pid);
/*
 * Leaves a program that spoilt the memory it shares with us, if there is one. Not from within a
 * stop.
 */
void target_leave_corrupt(struct target *t);

#endif
