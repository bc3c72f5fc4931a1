/* --inspect of a running process: it is stopped, read, resumed, and reported. */
#ifndef PTMEM_INSPECT_PROCESS_H
#define PTMEM_INSPECT_PROCESS_H

#include <sys/types.h>

#include "tracee/control/target.h"

struct run;

/*
 * Returns 0, or -errno with *problem_out and *detail_out as target_attach; with ATTACH_OK the error
 * was logged. The report goes to @run's --inspect-out, or to standard output.
 */
int inspect_process(struct run *run, pid_t pid, enum attach_problem *problem_out,
		    long *detail_out);

#endif
