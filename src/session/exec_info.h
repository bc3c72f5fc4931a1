/*
 * The program that a process executed, as passed to execve(2), and whether --trace-children-skip
 * or --trace-children-skip-by-arg excludes it.
 */
#ifndef PTMEM_SESSION_EXEC_INFO_H
#define PTMEM_SESSION_EXEC_INFO_H

#include <sys/types.h>

#include "base/types.h"

/*
 * For "cmd:" (doc/massif.md 1.1): the words of the command line, separated by spaces, with line
 * feeds replaced by spaces. @is_fresh: the process has just executed its program; then the path of
 * the program replaces argv[0] (which may be anything), without a script's interpreter. Otherwise
 * it is argv, or the title that the process wrote there, without padding. The caller frees it.
 */
char *exec_info_command(pid_t pid, bool is_fresh);

/*
 * The base name of the link by which @pid executed its program, symbolic or not: Debian's
 * redis-server is one to redis-check-rdb. *@file_out: the program's inode. NULL: it is a script,
 * the link is gone, or it is not known from where. The caller frees it.
 */
char *exec_info_link(pid_t pid, ino_t *file_out);

/* --trace-children-skip and --trace-children-skip-by-arg: programs that are not followed. */

/*
 * For event_sink: whether the program just executed by @pid, at its first instruction, is excluded
 * by the path passed to execve, or by one of its arguments.
 */
bool skip_exec(void *ctx, pid_t pid);

#endif
