/* What a process executed, as passed to execve(2). */
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
 * For "cmd:" (spec/massif.md 1.1): the words of the command line, separated by blanks, with line
 * feeds replaced by blanks. @is_fresh: the process has just executed its program, whose path comes
 * first (argv[0] may be anything, and the user did not name a script's interpreter); else argv as
 * it is, or the title that the process wrote there, without its padding. The caller frees it.
 */
char *exec_info_command(pid_t pid, bool is_fresh);

#endif
