/* The end of a process, and of its address space with everything that belongs to it. */
#ifndef PTMEM_TRACEE_CONTROL_PROCESS_END_H
#define PTMEM_TRACEE_CONTROL_PROCESS_END_H

#include "tracee/state/event_sink.h"

struct process;
struct target;

/* @p leaves its space, which ends with its last process. */
void process_leave_space(struct target *t, struct process *p, enum space_end why);
/* Removes @p from its space and from the table. */
void process_remove(struct target *t, struct process *p, enum space_end why);

#endif
