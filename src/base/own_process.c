/*
 * ptmem's own processes: main on a stack of its own, with a guard page below; daemons by a double
 * fork, which report their pid through a socket; copies that send a result. See own_process.h.
 */
#include "base/own_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/globals.h"
#include "base/log.h"
#include "base/types.h"

#define STACK_SIZE (8u << 20)
#define GUARD_SIZE (64u << 10)

struct call_on_stack {
	int (*fn)(int argc, char **argv);
	int argc, result;
	char **argv;
};

/* makecontext passes ints. */
static void enter(unsigned high, unsigned low)
{
	struct call_on_stack *c = (struct call_on_stack *)((uintptr_t)high << 32 | low);

	c->result = c->fn(c->argc, c->argv);
}

static void set_default_size(void)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) != 0)
		return;
	if (pthread_attr_setstacksize(&attr, STACK_SIZE) == 0)
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv)
{
	struct call_on_stack c = {.fn = fn, .argc = argc, .argv = argv};
	uintptr_t address = (uintptr_t)&c;
	ucontext_t back, there;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_SIZE)
		return fn(argc, argv);
	uint8_t *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED ||
	    mprotect(memory + GUARD_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE) != 0 ||
	    getcontext(&there) != 0)
		return fn(argc, argv);
	set_default_size();
	there.uc_stack.ss_sp = memory + GUARD_SIZE;
	there.uc_stack.ss_size = STACK_SIZE;
	there.uc_link = &back;
	makecontext(&there, (void (*)(void))enter, 2, (unsigned)(address >> 32),
		    (unsigned)address);
	if (swapcontext(&back, &there) != 0)
		return fn(argc, argv);
	return c.result;
}

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

int daemon_start_connected(const char *name, void (*run)(void *ctx), void *ctx, pid_t *pid_out)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	int rc = daemon_start(run_connected, &(struct connected){name, run, ctx, pair[1]});
	close(pair[1]);
	/* its pid comes from the process itself, since its parent has exited */
	ssize_t n = -1;
	while (rc == 0 && (n = read(pair[0], pid_out, sizeof(*pid_out))) < 0 && errno == EINTR)
		;
	if (n == sizeof(*pid_out))
		return pair[0];
	close(pair[0]);
	return rc ? rc : -ECHILD;
}

/* The copy sends its result through a pipe, whose end without one means that it was killed. */

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
