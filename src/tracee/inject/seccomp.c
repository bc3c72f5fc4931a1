/*
 * A filter may kill the program for a system call that it does not expect. So each filter must be
 * known to allow the calls that ptmem injects. It is
 *
 *	of        known by
 *	ptmem     having installed it, in a program that it started (syscalls/syscalls.c): it stops
 *	          calls, but only for ptmem
 *	ptmem's   a trial in a child process (seccomp_trial.h), for programs that ptmem started;
 *	parents   such a filter is inherited, and filters are only ever added: with as many filters
 *	          as ptmem has, these are the same
 *	others    reading and evaluating it (filter_eval.h), for which the kernel requires that
 *	          ptmem has CAP_SYS_ADMIN and no filter itself
 *
 * Nothing is remembered: a thread may add a filter at any time, for all threads of its process. An
 * evaluation of the 1158 instructions of Podman's filter takes 70 us.
 */
#include "tracee/inject/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "tracee/inject/injected_calls.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

#define MAX_FILTERS 64
#define MAX_ASKED 16 /* threads, to find one */

int seccomp_count_filters(pid_t tid)
{
	struct proc_status st;
	if (proc_status_read(tid, &st) != 0)
		return -1;
	return st.seccomp_mode == 0 ? 0 : st.seccomp_mode == 2 ? st.seccomp_filters : -1;
}

static struct seccomp_refusal refusal(const char *reason)
{
	return (struct seccomp_refusal){reason, ""};
}

/* Why a filter could not be read. */
static struct seccomp_refusal unreadable(int rc)
{
	if (rc == -EACCES && seccomp_count_filters(getpid()) != 0)
		return refusal("ptmem cannot read its seccomp filter, since it has one itself");
	if (rc == -EACCES)
		return refusal("ptmem cannot read its seccomp filter without CAP_SYS_ADMIN");
	return refusal("its seccomp filter cannot be read");
}

/* Reads and evaluates @count filters of @tid, but for number @own. */
static bool evaluate(const struct target *t, pid_t tid, int count, int own,
		     struct seccomp_refusal *why)
{
	_cleanup_free_ struct sock_filter *code = xcalloc(BPF_MAXINSNS, sizeof(*code));
	for (int i = 0; i < count; i++) {
		if (i == own)
			continue;
		int n = ptrace_get_filter(tid, (unsigned)i, code);
		const struct injected_call *c = NULL;
		if (n >= 0)
			c = injected_calls_find_forbidden(code, (size_t)n, t->arch->audit_arch);
		if (n < 0 || c) {
			*why = c ? (struct seccomp_refusal){SECCOMP_FORBIDS, c->name}
				 : unreadable(n);
			return false;
		}
	}
	*why = refusal("its seccomp filters have changed"); /* another thread has added one */
	return ptrace_get_filter(tid, (unsigned)count, NULL) == -ENOENT;
}

static bool allows(const struct target *t, pid_t tid, struct seccomp_refusal *why)
{
	const struct inherited_filters *f = &t->inherited;
	bool has_own = t->syscalls.way == SYSCALLS_FILTER;
	int count = seccomp_count_filters(tid);
	if (count == 0)
		return true;
	if (count < 0 || count > MAX_FILTERS) {
		*why = refusal("seccomp may forbid to map pads");
		return false;
	}
	if (f->count >= 0 && count == f->count + has_own) {
		*why = f->refusal;
		return !f->refusal.reason;
	}
	return evaluate(t, tid, count, has_own ? f->count : -1, why);
}

bool seccomp_allows_injection(const struct target *t, pid_t tid, struct seccomp_refusal *why_out)
{
	struct seccomp_refusal why = refusal("");
	bool is_allowed = allows(t, tid, &why);
	if (!is_allowed && why_out)
		*why_out = why;
	return is_allowed;
}

struct thread *seccomp_pick_thread(struct target *t, struct address_space *s)
{
	struct thread *th, *first = thread_pick(t, s);
	if (!first || seccomp_allows_injection(t, first->tid, NULL))
		return first;
	unsigned asked = 0;
	for_each_thread_in(t, s, th) {
		if (th == first || th->is_exiting || !th->is_held || th->vfork.is_waiting)
			continue;
		if (asked++ == MAX_ASKED)
			break;
		if (seccomp_allows_injection(t, th->tid, NULL))
			return th;
	}
	return first;
}
