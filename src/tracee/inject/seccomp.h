/* Whether seccomp filters let a thread make system calls for us. */
#ifndef PTMEM_TRACEE_INJECT_SECCOMP_H
#define PTMEM_TRACEE_INJECT_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

struct target;

/* How many filters see the calls of @tid; -1 if the kernel does not say. */
int seccomp_count_filters(pid_t tid);
/* Whether calls may be injected into @tid: it has no filter but ptmem's own. */
bool seccomp_allows_injection(const struct target *t, pid_t tid);

#endif
