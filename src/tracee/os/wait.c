/* Waits for stops with waitid and WNOWAIT, or for SIGCHLD, which is blocked. */
#include "tracee/os/wait.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

bool wait_for_child(unsigned ms)
{
	const struct timespec pause = {0, ms * 1000000l};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, NULL, &pause) == SIGCHLD;
}

int wait_peek(pid_t tid, bool no_wait, struct wait_report *out)
{
	siginfo_t info = {0};
	if (waitid(tid ? P_PID : P_ALL, (id_t)tid, &info,
		   WEXITED | WSTOPPED | WNOWAIT | __WALL | (no_wait ? WNOHANG : 0)) != 0)
		return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	out->tid = info.si_pid;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return waitpid(info.si_pid, &out->status, __WALL) == info.si_pid ? 0 : -EAGAIN;
	out->status = info.si_status << 8 | 0x7f; /* in waitpid's format */
	return 0;
}
