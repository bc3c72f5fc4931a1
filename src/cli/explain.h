/*
 * Error messages that explain a failure and, if possible, what to do about it.
 */
#ifndef PTMEM_EXPLAIN_H
#define PTMEM_EXPLAIN_H

#include <sys/types.h>
#include "tracee/control/target.h"


/* Why process @pid was not attached to: what target_attach gave. */
void explain_attach(pid_t pid, int rc, enum attach_problem problem, long detail);
/* Why page faults are not traced: @rc of perf_event_open. */
void explain_faults(int rc);
/* Why instructions are not counted: @rc of instructions_check. */
void explain_instructions(int rc);
/* Why program @name was not started: @rc of target_start. */
void explain_start(const char *name, int rc);
/* Why program @name, which was started, is not profiled. */
void explain_refusal(const char *name, enum attach_problem problem);

#endif
