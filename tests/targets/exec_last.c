/*
 * exec_last: at each SIGUSR1 one thread ends, for tests/e2e/delays.c: the first thread, then a second
 * one, which creates a third before, and at last the third, which executes the program again. The
 * new image allocates until its standard input ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *path;
static int end_first[2];
static sigset_t usr1;

static void wait_signal(void)
{
	int sig;

	sigwait(&usr1, &sig);
}

static void *third(void *arg)
{
	(void)arg;
	wait_signal();
	execl(path, path, "again", NULL); /* /proc/self/exe is gone with the first thread */
	return NULL;
}

static void *second(void *arg)
{
	pthread_t thread;

	(void)arg;
	wait_signal();
	if (write(end_first[1], "x", 1) != 1)
		_exit(2);
	wait_signal();
	pthread_create(&thread, NULL, third, NULL);
	return NULL;
}

static int allocate(void)
{
	char letter;
	void *volatile p;

	while (read(STDIN_FILENO, &letter, 1) == 1) {
		p = malloc(1000);
		free(p);
		if (write(STDOUT_FILENO, "x", 1) != 1)
			return 2;
	}
	return 3;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char letter;

	path = argv[0];
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	if (argc > 1)
		return allocate();
	if (pipe(end_first) != 0 || pthread_create(&thread, NULL, second, NULL) != 0)
		return 2;
	if (write(STDOUT_FILENO, "x", 1) != 1 || read(end_first[0], &letter, 1) != 1)
		return 2;
	pthread_exit(NULL);
}
