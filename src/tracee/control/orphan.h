/* Children whose parent was killed before it could report them. */
#ifndef PTMEM_TRACEE_CONTROL_ORPHAN_H
#define PTMEM_TRACEE_CONTROL_ORPHAN_H

#include <stdbool.h>
#include <sys/types.h>

struct process;
struct target;

/*
 * Whether @child, a stopped process that is not known yet, was forked by @dying, whose threads have
 * all ended, rather than by a living process that will report it. False if it is gone.
 */
bool orphan_is_of(const struct target *t, const struct process *dying, pid_t child);

#endif
