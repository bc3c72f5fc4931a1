/* The copy sends its result through a pipe, whose end without one means that it was killed. */
#include "base/background.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/daemon.h"
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

struct copy {
	const struct background_job *job;
	int result;                /* a pipe */
};

static void run_copy(void *ctx)
{
	const struct copy *c = ctx;

	log_set_check_hook(NULL, NULL); /* the tracees are the original's */
	daemon_ignore_signals();
	prctl(PR_SET_NAME, NAME);
	close_connections(c->result, c->job->socket);
	int rc = c->job->work(c->job->ctx);

	_exit(write(c->result, &rc, sizeof(rc)) != sizeof(rc));
}

/* -- in the original -- */

int background_start(const struct background_job *job)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) != 0)
		return -errno;
	int rc = daemon_start(run_copy, &(struct copy){job, fd[1]});

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
