/*
 * exec_loop N: twenty threads wait, and one of them executes the program again, with N - 1; that waits
 * for the ends of all others. At 0 it prints OK. With -1 it continues until there is a file `stop`.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long left;

static void *wait_here(void *arg)
{
	void *volatile p = malloc(10);

	free(p);
	for (;;)
		pause();
	return arg;
}

static void *execute(void *name)
{
	char number[24];
	char *argv[] = { name, number, NULL };

	snprintf(number, sizeof(number), "%ld", left > 0 ? left - 1 : left);
	execv("/proc/self/exe", argv);
	_exit(99);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	left = argc > 1 ? atol(argv[1]) : 0;
	if (left == 0 || (left < 0 && access("stop", F_OK) == 0))
		return puts("OK") < 0;
	for (int i = 0; i < 20; i++)
		if (pthread_create(&thread, NULL, wait_here, NULL))
			return 2;
	if (pthread_create(&thread, NULL, execute, argv[0]))
		return 2;
	for (;;)
		pause();
}
