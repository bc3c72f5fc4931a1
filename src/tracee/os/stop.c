/*
 * Wait statuses of seized threads; ptrace(2). With PTRACE_SEIZE every event has
 * its own code in status >> 16, and a group stop is a PTRACE_EVENT_STOP with one of the four stop
 * signals.
 */
#include "tracee/os/stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

bool stop_is_stopping(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static enum stop_kind event_kind(int event)
{
	switch (event) {
	case PTRACE_EVENT_FORK: return STOP_FORK;
	case PTRACE_EVENT_VFORK: return STOP_VFORK;
	case PTRACE_EVENT_CLONE: return STOP_CLONE;
	case PTRACE_EVENT_VFORK_DONE: return STOP_VFORK_DONE;
	case PTRACE_EVENT_EXEC: return STOP_EXEC;
	case PTRACE_EVENT_EXIT: return STOP_EXIT;
	case PTRACE_EVENT_SECCOMP: return STOP_SECCOMP;
	}
	return STOP_OTHER;
}

struct stop stop_decode(int status)
{
	if (WIFEXITED(status))
		return (struct stop){STOP_EXITED, WEXITSTATUS(status)};
	if (WIFSIGNALED(status))
		return (struct stop){STOP_KILLED, WTERMSIG(status)};
	if (!WIFSTOPPED(status))
		return (struct stop){STOP_OTHER, status};
	int sig = WSTOPSIG(status), event = status >> 16;
	if (event == PTRACE_EVENT_STOP)
		return (struct stop){stop_is_stopping(sig) ? STOP_GROUP : STOP_INTERRUPT, sig};
	if (event != 0)
		return (struct stop){event_kind(event), event};
	if (sig == (SIGTRAP | 0x80))
		return (struct stop){STOP_SYSCALL, 0};
	return (struct stop){STOP_SIGNAL, sig};
}
