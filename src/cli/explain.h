/*
 * Error messages that explain a failure and, if possible, what to do about it.
 */
#ifndef PTMEM_EXPLAIN_H
#define PTMEM_EXPLAIN_H

#include <sys/types.h>

#include "base/types.h"
#include "tracee/control/target.h"

/* Whether /proc is that of the caller's pid namespace; if not, says so. */
bool explain_proc(void);
/* The same for open files, if ptmem may have too few for its results. */
bool explain_descriptors(void);
/*
 * @name was given to -p instead of a process id: which processes have it, and what to type. @source:
 * begins the message.
 */
void explain_pid(const char *source, const char *name);
/* Why attaching to process @pid failed, from the results of target_attach. */
void explain_attach(pid_t pid, int rc, enum attach_problem problem, long detail);
/* Why page faults cannot be traced: @rc of perf_event_open. */
void explain_faults(int rc);
/* Why instructions cannot be counted: @rc of instructions_check. */
void explain_instructions(int rc);
/* Why program @name could not be started: @rc of target_start. */
void explain_start(const char *name, int rc);
/* Why program @name was started but is not profiled. */
void explain_refusal(const char *name, enum attach_problem problem);

#endif
