/* The copy sends its result through a pipe, whose end without one means that it was killed. */
#include "base/background.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/globals.h"
#include "base/log.h"

/* Killing the original by name must not end its copies. */
#define NAME "ptmem-writer"

/* -- in the copy -- */

static bool is_connection(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode));
}

/* Closes sockets and pipes except standard files, messages, @result and @socket. */
static void close_connections(int result, int socket)
{
	DIR *dir = opendir("/proc/self/fd");

	for (struct dirent *d; dir && (d = readdir(dir));) {
		int fd = atoi(d->d_name);

		if (fd > STDERR_FILENO && fd != result && fd != socket && fd != globals.log.fd &&
		    fd != dirfd(dir) && is_connection(fd))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGTSTP, SIGTTIN,
				      SIGTTOU, SIGALRM, SIGUSR1, SIGUSR2, SIGIO};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

ATTR_NORETURN static void run_copy(const struct background_job *job, int result)
{
	log_set_check_hook(NULL, NULL); /* the tracees are the original's */
	ignore_signals();
	prctl(PR_SET_NAME, NAME);
	close_connections(result, job->socket);
	int rc = job->work(job->ctx);

	_exit(write(result, &rc, sizeof(rc)) != sizeof(rc));
}

/* -- in the original -- */

static int fork_orphan(const struct background_job *job, const int pipe[2])
{
	pid_t pid = fork();

	if (pid == 0) {
		close(pipe[0]);
		pid = fork();
		if (pid == 0)
			run_copy(job, pipe[1]);
		_exit(pid < 0);
	}
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0 ? 0 : -EAGAIN;
}

int background_start(const struct background_job *job)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) != 0)
		return -errno;
	int rc = fork_orphan(job, fd);

	close(fd[1]);
	if (rc == 0)
		return fd[0];
	close(fd[0]);
	return rc;
}

int background_result(int fd, bool wait, int *out)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;
	int rc;

	if (!wait && poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	while ((n = read(fd, &rc, sizeof(rc))) < 0 && errno == EINTR)
		;
	*out = n == sizeof(rc) ? rc : -ECHILD;
	close(fd);
	return 0;
}
