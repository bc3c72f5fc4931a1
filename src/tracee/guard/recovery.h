/* Undoing what a ptmem left in a program that was killed together with its guardian. */
#ifndef PTMEM_TRACEE_GUARD_RECOVERY_H
#define PTMEM_TRACEE_GUARD_RECOVERY_H

#include <sys/types.h>

#include "tracee/guard/guardian.h"

/* Waits, at most some seconds, until no guardian is cleaning up @pid, or about to. */
void recovery_await(pid_t pid);
/* Before an attach to @pid: does what a guardian that was killed has not done, by @clean_fn. */
void recovery_run(pid_t pid, guardian_clean_fn *clean_fn);

#endif
