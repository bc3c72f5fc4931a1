/* Whether seccomp filters allow a thread to make system calls for us. */
#ifndef PTMEM_TRACEE_INJECT_SECCOMP_H
#define PTMEM_TRACEE_INJECT_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

struct target;

/* The number of filters that apply to @tid; -1 if the kernel does not report it. */
int seccomp_count_filters(pid_t tid);
/* Whether calls may be injected into @tid: it has no filter except ptmem's own. */
bool seccomp_allows_injection(const struct target *t, pid_t tid);

#endif
