/* A filter of the program may kill it for a system call that it does not expect. */
#include "tracee/inject/seccomp.h"

#include "base/proc.h"
#include "tracee/state/target_internal.h"

int seccomp_count_filters(pid_t tid)
{
	struct proc_status st;
	if (proc_status_read(tid, &st) != 0)
		return -1;
	return st.seccomp_mode == 0 ? 0 : st.seccomp_mode == 2 ? st.seccomp_filters : -1;
}

bool seccomp_allows_injection(const struct target *t, pid_t tid)
{
	int filters = seccomp_count_filters(tid);
	return filters == 0 ||
	       (filters == 1 && t->syscalls.way == SYSCALLS_FILTER && t->syscalls.own_filters == 0);
}
