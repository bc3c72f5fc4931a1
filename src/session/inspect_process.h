/* --inspect of a running process: it is stopped, read, resumed, and reported. */
#ifndef PTMEM_INSPECT_PROCESS_H
#define PTMEM_INSPECT_PROCESS_H

#include <sys/types.h>

#include "tracee/control/target.h"

/*
 * 0, or -errno with *problem_out and *detail_out as target_attach has them; ATTACH_OK: what was
 * wrong was logged. @path: where the report goes, JSON if it ends in .json; NULL = standard
 * output, as text.
 */
int inspect_process(pid_t pid, const char *path, enum attach_problem *problem_out,
		    long *detail_out);

#endif
