/* See daemon.h. */
#include "base/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"

int daemon_start(void (*run)(void *ctx), void *ctx)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run(ctx);
		_exit(pid < 0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -EAGAIN;
}

void daemon_ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGTSTP, SIGTTIN,
				      SIGTTOU, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGIO};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

void daemon_leave_files(int in, int kept)
{
	dup2(in, STDIN_FILENO);
	if (kept >= 0)
		dup2(kept, DAEMON_KEPT);
	close_range(STDOUT_FILENO, STDERR_FILENO, 0);
	close_range(DAEMON_KEPT + (kept >= 0), ~0u, 0);
	dup2(open("/dev/null", O_RDWR), STDERR_FILENO); /* the first is 1 */
}
