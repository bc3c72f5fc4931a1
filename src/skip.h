/* --trace-children-skip and --trace-children-skip-by-arg: which programs are not followed into. */
#ifndef PTMEM_SKIP_H
#define PTMEM_SKIP_H

#include "options.h"

/*
 * Whether the program that @pid has just executed, and nothing of which has run,
 * is to be left alone: its name as execve got it, or one of its arguments.
 */
bool skip_exec(const struct options *o, pid_t pid);

#endif
