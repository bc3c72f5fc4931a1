/* What a process executed, as execve(2) got it. */
#ifndef PTMEM_EXECUTED_H
#define PTMEM_EXECUTED_H

#include <sys/types.h>

#include "base/types.h"

/*
 * The name that execve got: of a script the script's, not its interpreter's. NULL if it cannot
 * be read. The caller frees it.
 */
char *executed_name(pid_t pid);

/*
 * For "cmd:" (spec/massif.md 1.1): the words of the command line with a blank between, line feeds
 * as blanks. @is_fresh: the process has just executed its program, whose name comes first then
 * (argv[0] may be anything, and a script's interpreter was not asked for); else argv as it is.
 * The caller frees it.
 */
char *executed_command(pid_t pid, bool is_fresh);

#endif
