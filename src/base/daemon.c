/* See daemon.h. */
#include "base/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
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

/* It must not be named ptmem: killing ptmem by name would end it, too. */
static void rename_process(const char *name)
{
	char line[4096];
	size_t length = strlen(name) + 1;
	_cleanup_close_ int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line));

	if (n > (ssize_t)length) {
		/* the arguments are contiguous */
		memset(program_invocation_name, 0, (size_t)n - 1);
		memcpy(program_invocation_name, name, length);
	}
	prctl(PR_SET_NAME, name);
}

void daemon_become(int fd, const char *name)
{
	setsid();
	daemon_ignore_signals();
	/* it must not keep pipes open or a directory busy */
	daemon_leave_files(fd, -1);
	if (chdir("/") != 0)
		return;
	rename_process(name);
}

/* What a new connected daemon knows. */
struct connected {
	const char *name;
	void (*run)(void *ctx);
	void *ctx;
	int fd;
};

static void run_connected(void *ctx)
{
	const struct connected *c = ctx;
	daemon_become(c->fd, c->name);
	pid_t pid = getpid();
	if (write(STDIN_FILENO, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	c->run(c->ctx);
}

/* Receives its pid from the process itself, since its parent has exited. */
static int read_pid(int fd, pid_t *pid_out)
{
	ssize_t n;
	while ((n = read(fd, pid_out, sizeof(*pid_out))) < 0 && errno == EINTR)
		;
	return n == sizeof(*pid_out) ? 0 : -ECHILD;
}

int daemon_start_connected(const char *name, void (*run)(void *ctx), void *ctx, pid_t *pid_out)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	int rc = daemon_start(run_connected, &(struct connected){name, run, ctx, pair[1]});
	close(pair[1]);
	if (rc == 0)
		rc = read_pid(pair[0], pid_out);
	if (rc == 0)
		return pair[0];
	close(pair[0]);
	return rc;
}
