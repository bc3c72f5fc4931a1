/* Processes that are not children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own_process.h"

#define TIMES 200

static void on_alarm(int sig)
{
	(void)sig;
}

static void say_parent(void *ctx)
{
	const int *fd = ctx;
	pid_t parent = getppid();

	_exit(write(fd[1], &parent, sizeof(parent)) != sizeof(parent));
}

/* Signals that interrupt it all the time change nothing. */
static void test_interrupted(void **state)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	int fd[2], failed = 0;

	assert_int_equal(pipe(fd), 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < TIMES; i++)
		failed += daemon_start(say_parent, fd) != 0;
	setitimer(ITIMER_REAL, &never, NULL);
	close(fd[1]);
	assert_int_equal(failed, 0);
	for (int i = 0; i < TIMES; i++) {
		pid_t parent = 0;

		assert_int_equal(read(fd[0], &parent, sizeof(parent)), sizeof(parent));
		assert_int_not_equal(parent, getpid());
	}
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	close(fd[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
