/*
 * Allocates without end; SIGUSR1 makes it execute its argument, or itself, SIGUSR2 makes it print OK
 * and end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signalled;

static void note(int sig)
{
	signalled = sig;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { 0, 1000000 };
	void *volatile p;

	signal(SIGUSR1, note);
	signal(SIGUSR2, note);
	while (!signalled) {
		p = malloc(100);
		free(p);
		nanosleep(&pause, NULL);
	}
	if (signalled == SIGUSR1)
		execv(argc > 1 ? argv[1] : "/proc/self/exe", argv);
	return puts("OK") < 0;
}
