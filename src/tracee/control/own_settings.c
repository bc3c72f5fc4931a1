/* sigtimedwait waits for SIGCHLD, so it must be blocked and not ignored. */
#include "tracee/control/own_settings.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "tracee/os/limit.h"

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
