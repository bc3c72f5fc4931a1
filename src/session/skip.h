/* --trace-children-skip and --trace-children-skip-by-arg: programs that are not followed. */
#ifndef PTMEM_SKIP_H
#define PTMEM_SKIP_H

#include <sys/types.h>

#include "session/options.h"

/*
 * Whether the program just executed by @pid, at its first instruction, is excluded by the path
 * passed to execve, or by one of its arguments.
 */
bool skip_exec(const struct options *o, pid_t pid);

#endif
