/*
 * pending_trap: its second thread blocks SIGTRAP and sends itself one that looks like the end of a
 * step; prints "ready", runs until the end of its input, and checks that the signal is still there.
 */
#include "truth.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *work(void *arg)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	siginfo_t info = { .si_signo = SIGTRAP, .si_code = TRAP_TRACE };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, &info) == 0);
	CHECK(puts("ready") >= 0 && fflush(stdout) == 0);
	while (poll(&input, 1, 0) == 0)
		;
	CHECK(sigtimedwait(&set, &info, &(struct timespec){0}) == SIGTRAP);
	CHECK(info.si_code == TRAP_TRACE);
	CHECK(puts("OK") >= 0);
	return arg;
}

int main(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}
