/*
 * Preloaded into ptmem by tests: makes races happen. What ptmem asks of the kernel about its target is
 * delayed, or something is done in between.
 *
 *	DELAYS_SEED    random delays, of which this number decides
 *	DELAYS_MOST    their upper bound, in microseconds (2000)
 *	DELAYS_EXEC    the signal that makes the target execute itself: sent before the first
 *	               PTRACE_SEIZE, which waits then until it runs another image
 *	DELAYS_REFUSE  how many requests of PTRACE_SEIZE fail with EPERM first, as inside execve
 *	DELAYS_SIGNAL  a signal that each thread is sent when it was seized, which it then stops for or dies of
 *	DELAYS_GONE    a signal that makes a thread of the target end: sent before each PTRACE_SEIZE
 *	               of one that is not the first, which waits then until this one is gone
 *	DELAYS_DIE     ptmem dies of SIGKILL at the ptrace request of this number (from 1)
 *	DELAYS_DIE_AT  only these requests are counted (PTRACE_...; all)
 *	DELAYS_DIE_IF  requests are counted as soon as this file exists
 *	DELAYS_DIE_LATER  it dies when the request was made, not before
 *	DELAYS_STOP    a signal that is sent to the traced process right before that
 *	DELAYS_HOLD    processes that ptmem forked wait before a ptrace request while this file exists
 *	DELAYS_HOLD_AT which request that is; DELAYS_HOLD.PID is created then
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pid_t ptmem; /* not its guardian */

__attribute__((constructor)) static void note_pid(void)
{
	ptmem = getpid();
}

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* One call of eight waits, for up to DELAYS_MOST. */
static void delay(void)
{
	static unsigned state, most;
	int saved = errno;

	if (!most) {
		most = getenv("DELAYS_SEED") ? number("DELAYS_MOST", 2000) : 1;
		state = number("DELAYS_SEED", 0) * 2654435761u ^ (unsigned)getpid();
	}
	state = state * 1103515245u + 12345u;
	if (most > 1 && (state >> 16) % 8 == 0) {
		state = state * 1103515245u + 12345u;
		const struct timespec pause = { 0, (long)((state >> 8) % most) * 1000l };
		nanosleep(&pause, NULL);
	}
	errno = saved;
}

static size_t read_auxv(pid_t pid, char *out, size_t size)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/auxv", (int)pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size);
	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* Makes @pid execute itself, and waits until it has. */
static void make_exec(pid_t pid)
{
	static int is_done;
	char before[1024], after[1024];
	const struct timespec pause = { 0, 1000000 };
	int sig = (int)number("DELAYS_EXEC", 0);

	if (!sig || is_done++)
		return;
	size_t size = read_auxv(pid, before, sizeof(before)), now;
	kill(pid, sig);
	do {
		nanosleep(&pause, NULL);
		now = read_auxv(pid, after, sizeof(after));
	} while (now == 0 || (now == size && memcmp(before, after, size) == 0));
}

/* Sends the seized thread @tid the signal, and waits until it has stopped. */
static void stop_by_signal(pid_t tid)
{
	const struct timespec pause = { 0, 1000000 };
	int sig = (int)number("DELAYS_SIGNAL", 0);
	char name[64], state = 0;

	if (!sig || ptmem != getpid() || kill(tid, sig) != 0)
		return;
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)tid);
	for (int i = 0; i < 1000 && state != 't' && state != 'Z'; i++) {
		FILE *file = fopen(name, "r");

		if (!file || fscanf(file, "%*d %*s %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		nanosleep(&pause, NULL);
	}
}

/* Sends the process of @tid, not its first thread, the signal, and waits until @tid is gone. */
static void make_gone(pid_t tid)
{
	const struct timespec pause = { 0, 1000000 };
	int sig = (int)number("DELAYS_GONE", 0), pid = 0;
	char name[64], line[256];

	snprintf(name, sizeof(name), "/proc/%d/status", (int)tid);
	FILE *file = sig && ptmem == getpid() ? fopen(name, "r") : NULL;
	if (!file)
		return;
	while (pid == 0 && fgets(line, sizeof(line), file))
		sscanf(line, "Tgid: %d", &pid);
	fclose(file);
	if (pid == tid || kill(pid, sig) != 0)
		return;
	snprintf(name, sizeof(name), "/proc/%d/task/%d", pid, (int)tid);
	while (access(name, F_OK) == 0)
		nanosleep(&pause, NULL);
}

static int is_refused(void)
{
	static unsigned left, is_known;

	if (!is_known++)
		left = number("DELAYS_REFUSE", 0);
	return left > 0 && left--;
}

/* Whether ptmem dies at this @request. */
static int must_die(int request)
{
	static unsigned count;
	unsigned last = number("DELAYS_DIE", 0), at = number("DELAYS_DIE_AT", 0);
	const char *file = getenv("DELAYS_DIE_IF");

	if (!last || ptmem != getpid() || (at && (unsigned)request != at) || (file && access(file, F_OK) != 0))
		return 0;
	return ++count == last;
}

static void hold(int request)
{
	const struct timespec pause = { 0, 1000000 };
	const char *file = getenv("DELAYS_HOLD");
	char held[4096];

	if (!file || ptmem == getpid() || (unsigned)request != number("DELAYS_HOLD_AT", 0))
		return;
	snprintf(held, sizeof(held), "%s.%d", file, (int)getpid());
	close(open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (access(file, F_OK) == 0)
		nanosleep(&pause, NULL);
}

static void die(pid_t pid)
{
	int sig = (int)number("DELAYS_STOP", 0);

	if (sig)
		kill(pid, sig);
	raise(SIGKILL);
}

typedef long ptrace_fn(int request, pid_t pid, void *addr, void *data);

/* <sys/ptrace.h> declares it with an ellipsis; its arguments come in the same registers. */
long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_fn *real;
	va_list list;

	va_start(list, request);
	pid_t pid = va_arg(list, pid_t);
	void *addr = va_arg(list, void *), *data = va_arg(list, void *);
	va_end(list);
	if (!real)
		real = (ptrace_fn *)dlsym(RTLD_NEXT, "ptrace");
	if ((int)request == PTRACE_SEIZE) {
		make_exec(pid);
		make_gone(pid);
		if (is_refused()) {
			errno = EPERM;
			return -1;
		}
	}
	hold((int)request);
	int dies = must_die((int)request);
	if (dies && !getenv("DELAYS_DIE_LATER"))
		die(pid);
	delay();
	long result = real((int)request, pid, addr, data);
	if ((int)request == PTRACE_SEIZE && result == 0)
		stop_by_signal(pid);
	if (dies)
		die(pid);
	delay();
	return result;
}

FILE *fopen(const char *name, const char *mode)
{
	static FILE *(*real)(const char *, const char *);

	if (!real)
		real = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
	if (strncmp(name, "/proc/", 6) == 0)
		delay();
	return real(name, mode);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
			 const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
	static ssize_t (*real)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
			       unsigned long);

	if (!real)
		real = (ssize_t (*)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
				    unsigned long, unsigned long))dlsym(RTLD_NEXT, "process_vm_readv");
	delay();
	return real(pid, local, local_count, remote, remote_count, flags);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);

	if (!real)
		real = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	delay();
	return real(fd, data, size, at);
}
