/* Resource limits of ptmem itself. */
#include "tracee/os/own_settings.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/types.h"

#define RESERVE 16  /* results, files below /proc, libraries whose symbols are read */

void limit_raise(int which, struct rlimit *old_out)
{
	struct rlimit limit = {0, 0};
	if (getrlimit(which, &limit) != 0)
		limit = (struct rlimit){0, 0};
	if (old_out)
		*old_out = limit;
	const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
	if (limit.rlim_max > limit.rlim_cur)
		setrlimit(which, &raised);
}

int limit_keep(int fd)
{
	struct rlimit limit;
	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd < limit.rlim_cur - MIN(limit.rlim_cur / 4, (rlim_t)RESERVE))
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

/*
 * Uses the lowest real-time priority for a moment. Without the privilege nothing changes: ptmem
 * then competes with the threads that it has resumed.
 */

void rt_boost_begin(struct rt_boost *b)
{
	struct sched_param before = {0};
	const struct sched_param now = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	*b = (struct rt_boost){.policy = sched_getscheduler(0)};
	if ((b->policy != SCHED_OTHER && b->policy != SCHED_BATCH) ||
	    sched_getparam(0, &before) != 0)
		return;
	b->priority = before.sched_priority;
	b->is_on = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &now) == 0;
}

void rt_boost_end(struct rt_boost *b)
{
	const struct sched_param before = {.sched_priority = b->priority};
	if (b->is_on)
		sched_setscheduler(0, b->policy, &before);
	b->is_on = false;
}

/* sigtimedwait waits for SIGCHLD, so it must be blocked and not ignored. */

struct own_settings {
	sigset_t mask;
	struct sigaction child;
	struct rlimit files;    /* rlim_max 0: unknown */
};

struct own_settings *own_settings_change(void)
{
	struct own_settings *old = xcalloc(1, sizeof(*old));
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaction(SIGCHLD, &standard, &old->child);
	sigprocmask(SIG_BLOCK, &set, &old->mask);
	limit_raise(RLIMIT_NOFILE, &old->files); /* two files for each living process */
	return old;
}

void own_settings_restore(const struct own_settings *old)
{
	sigaction(SIGCHLD, &old->child, NULL);
	sigprocmask(SIG_SETMASK, &old->mask, NULL);
	if (old->files.rlim_max > 0)
		setrlimit(RLIMIT_NOFILE, &old->files);
}
