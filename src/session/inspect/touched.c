/* The time between the two stops of --cold. */
#include "session/inspect/touched.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "session/inspect/inspect_stopped.h"
#include "tracee/inject/touched_pages.h"

static int start(struct inspect_visit *v, struct address_space *s)
{
	return touched_pages_begin(v->target, s);
}

static int begin(struct inspect_visit *v)
{
	int rc = inspect_visit_run(v);

	if (rc == -ENOTSUP && v->problem == ATTACH_OK)
		log_error("process %d: what it touches cannot be found: it has a seccomp filter, "
			  "or no room in its code", (int)v->pid);
	else if (rc != 0 && v->problem == ATTACH_OK)
		log_error("process %d: what it touches cannot be found: %s", (int)v->pid,
			  strerror(-rc));
	return rc;
}

/* For @ns; until the process has ended, -ESRCH; or until one of @signals, which are blocked. */
static int wait_for(pid_t pid, uint64_t ns, const sigset_t *signals)
{
	uint64_t end = clock_now_ns() + ns, now;
	struct signalfd_siginfo info;
	int rc = 0;
	struct pollfd fd[2] = {
		{.fd = signalfd(-1, signals, SFD_CLOEXEC), .events = POLLIN},
		{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN}};

	while ((now = clock_now_ns()) < end && !fd[0].revents && !fd[1].revents) {
		uint64_t left = end - now;
		struct timespec t = {(time_t)(left / 1000000000), (long)(left % 1000000000)};

		if (ppoll(fd, 2, &t, NULL) < 0 && errno != EINTR)
			break;
	}
	if (fd[1].revents)
		rc = -ESRCH;
	if (fd[0].revents && read(fd[0].fd, &info, sizeof(info)) > 0)
		log_verbose("the time ends early");
	close(fd[0].fd);
	if (fd[1].fd >= 0)
		close(fd[1].fd);
	return rc;
}

int touched_wait(struct registry *registry, pid_t pid, double *seconds,
		 enum attach_problem *problem_out, long *detail_out)
{
	struct inspect_visit visit = {
		.registry = registry, .pid = pid, .makes_calls = true, .fn = start};
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	int rc = begin(&visit);

	*problem_out = visit.problem;
	*detail_out = visit.detail;
	if (rc == 0) {
		uint64_t since = clock_now_ns();

		log_verbose("process %d: what it touches counts from now on", (int)pid);
		rc = wait_for(proc_find_reader(pid), (uint64_t)(*seconds * 1e9), &signals);
		*seconds = (double)(clock_now_ns() - since) / 1e9;
		if (rc != 0)
			log_error("process %d ended before that time had passed", (int)pid);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}
