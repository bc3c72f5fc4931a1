/*
 * --inspect without a profile: of a running process, which is stopped, read and resumed, or of a
 * core file. The report goes to --inspect-out or to standard output.
 */
#ifndef PTMEM_SESSION_INSPECT_INSPECT_COMMAND_H
#define PTMEM_SESSION_INSPECT_INSPECT_COMMAND_H

#include <sys/types.h>

#include "tracee/control/target.h"

struct run;

/*
 * Reports the memory in the core file @path. @program: the program's file; NULL = the one named in
 * the core. The report goes to the same place as that of inspect_process. Returns 0, or -errno
 * after a message.
 */
int inspect_core(struct run *run, const char *path, const char *program);

/* --inspect of a running process: it is stopped, read, resumed, and reported. */

/*
 * Returns 0, or -errno with *problem_out and *detail_out as target_attach; with ATTACH_OK the error
 * was logged. The report goes to @run's --inspect-out, or to standard output.
 */
int inspect_process(struct run *run, pid_t pid, enum attach_problem *problem_out,
		    long *detail_out);

#endif
