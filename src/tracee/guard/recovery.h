/* Undoes what a ptmem that was killed together with its guardian left in a program. */
#ifndef PTMEM_TRACEE_GUARD_RECOVERY_H
#define PTMEM_TRACEE_GUARD_RECOVERY_H

#include <sys/types.h>

#include "tracee/guard/guardian.h"

/* Waits, at most some seconds, until no guardian works on @pid. */
void recovery_await(pid_t pid);
/* Before an attach to @pid: does the work of a guardian that was killed, by @clean_fn. */
void recovery_run(pid_t pid, guardian_clean_fn *clean_fn);

#endif
