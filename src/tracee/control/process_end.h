/* The end of a process, and of its address space with all that belongs to it. */
#ifndef PTMEM_TRACEE_CONTROL_PROCESS_END_H
#define PTMEM_TRACEE_CONTROL_PROCESS_END_H

#include "tracee/state/event_sink.h"

struct process;
struct target;

/* @p has no space any more; the space ends with its last process. */
void process_leave_space(struct target *t, struct process *p, enum space_end why);
/* Removes @p, and takes it out of its space. */
void process_remove(struct target *t, struct process *p, enum space_end why);

#endif
