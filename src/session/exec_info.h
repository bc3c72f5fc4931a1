/* The program that a process executed, as passed to execve(2). */
#ifndef PTMEM_EXEC_INFO_H
#define PTMEM_EXEC_INFO_H

#include <sys/types.h>

#include "base/types.h"

/*
 * The path that was passed to execve: for a script its own, not the interpreter's. NULL if it
 * cannot be read. The caller frees it.
 */
char *exec_info_name(pid_t pid);

/*
 * For "cmd:" (doc/massif.md 1.1): the words of the command line, separated by spaces, with line
 * feeds replaced by spaces. @is_fresh: the process has just executed its program; then the path of
 * the program replaces argv[0] (which may be anything), without a script's interpreter. Otherwise
 * it is argv, or the title that the process wrote there, without padding. The caller frees it.
 */
char *exec_info_command(pid_t pid, bool is_fresh);

#endif
