/*
 * A thread that was killed has at most one stop before it:
 *
 *	wait status          /proc/TID/stat
 *	stopped              any                its exit stop is to come
 *	exited               any                it was missed
 *	none                 exiting, zombie    it was missed
 *	none                 runs               one or the other: it soon turns out which
 *	none                 sleeps             it has not been killed: it is in execve
 */
#include "tracee/control/exit_stops.h"

#include <sys/wait.h>
#include <time.h>

#include "base/proc.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

#define PAUSE_NS 50000l
#define TRIES 100000u /* on an overloaded machine it takes seconds */

enum fate { IS_OVER, IS_OPEN, IS_TO_COME };

static enum fate find_fate(pid_t tid)
{
	int flags = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
	siginfo_t info = {0};
	struct proc_stat st;

	if (waitid(P_PID, (id_t)tid, &info, flags) == 0 && info.si_pid)
		return info.si_code == CLD_TRAPPED ? IS_TO_COME : IS_OVER;
	if (proc_stat_read(tid, &st) != 0 || st.is_exiting || st.state == 'Z' || st.state == 'X')
		return IS_OVER;
	return st.state == 'R' ? IS_OPEN : IS_TO_COME;
}

static enum fate find_fates(const struct target *t, const struct thread *th)
{
	enum fate all = IS_OVER;
	const struct thread *other;

	for_each_thread(t, other) {
		if (other == th || other->process != th->process)
			continue;
		if (pending_stops_has_exit(&t->pending, other->tid))
			return IS_TO_COME;
		enum fate fate = other->is_exiting ? IS_OVER : find_fate(other->tid);

		if (fate == IS_TO_COME)
			return fate;
		all = MAX(all, fate);
	}
	return all;
}

bool exit_stops_are_over(const struct target *t, const struct thread *th, bool is_group_end)
{
	const struct timespec pause = {0, PAUSE_NS};
	enum fate fate = find_fates(t, th);

	for (unsigned i = 0; i < TRIES && is_group_end && fate == IS_OPEN; i++) {
		nanosleep(&pause, NULL);
		fate = find_fates(t, th);
	}
	return fate == IS_OVER;
}
