/* See self_stop.h. */
#include "tracee/control/self_stop.h"

#include <signal.h>
#include <time.h>

#include "base/types.h"
#include "tracee/inject/stops.h"
#include "tracee/state/target_internal.h"

void self_stop_hold_continue(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Takes the blocked signal @sig from the pending ones. *info_out: zeros if it was not pending. */
static void take_pending(int sig, siginfo_t *info_out)
{
	const struct timespec now = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigtimedwait(&set, info_out, &now) != sig)
		*info_out = (siginfo_t){0};
}

pid_t self_stop_continued_by(void)
{
	siginfo_t info;

	take_pending(SIGCONT, &info);
	return info.si_signo ? MAX(info.si_pid, 1) : 0;
}

void self_stop_discard(int sig)
{
	siginfo_t info;

	take_pending(sig, &info);
}

#define STOPS_IN_A_ROW 32

bool self_stop_serve_pending(struct target *t)
{
	bool is_clean = false;
	for (int n = 0; n < STOPS_IN_A_ROW && !t->loop.promote && !t->loop.must_restart; n++) {
		bool has_served = stops_serve_next(t, true) == 0;
		if (!has_served && is_clean)
			return true;
		is_clean = !has_served;
		if (is_clean)
			self_stop_discard(SIGCHLD);
	}
	return false;
}
