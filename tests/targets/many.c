/*
 * Many processes with sizes that are known: for tests of reports about several processes.
 *
 *	many SHARED SIZE...     forks a child for each SIZE; they hold their blocks at the same time
 *	many loop COUNT         COUNT children, one after the other, the i-th with 1000 + i bytes
 *	many chain SIZE...      holds SIZE bytes, then executes itself with the other ones
 *	many fork SIZE...       a child holds SIZE bytes, then executes itself as chain does
 *	many nest SIZE...       as fork, but the child holds nothing, and has forked one that does
 *	many kill SIZE...       as the first, with SHARED 0, but the last child kills itself
 *
 * What all hold together they hold for HELD_NS at least: reports add up the states that recordings have,
 * one of each interval of theirs (a millisecond, of longer runs more).
 *
 * The parent holds SHARED bytes, which the children inherit, and then 1000 bytes of its own. Each
 * process prints its pid and what it allocated itself: "pid 12 bytes 34".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	HELD_NS = 40000000,
};

static void *volatile kept[4];

static void say(long bytes)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "pid %d bytes %ld\n", (int)getpid(), bytes);

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(2);
}

static __attribute__((noinline)) void hold(int slot, long bytes)
{
	kept[slot] = malloc((size_t)bytes);
	memset(kept[slot], 1, (size_t)bytes);
}

/* All children have allocated when each has written a byte to @ready; they end when @go is closed. */
static void child(long bytes, const int *ready, const int *go, int dies)
{
	char byte = 1;

	close(go[1]);
	hold(1, bytes);
	say(bytes);
	if (write(ready[1], &byte, 1) != 1)
		_exit(2);
	if (read(go[0], &byte, 1) != 0)
		_exit(2);
	if (dies)
		raise(SIGKILL);
	free(kept[1]);
	_exit(0);
}

static int together(long shared, char **size, int count, int last_dies)
{
	int ready[2], go[2];
	char byte;

	if (pipe(ready) || pipe(go))
		return 2;
	if (shared)
		hold(0, shared);
	for (int i = 0; i < count; i++)
		if (fork() == 0)
			child(atol(size[i]), ready, go, last_dies && i + 1 == count);
	hold(2, 1000);
	say(shared + 1000);
	for (int i = 0; i < count; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 2;
	for (struct timespec left = {.tv_nsec = HELD_NS}; nanosleep(&left, &left) && errno == EINTR;)
		;
	close(go[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int loop(int count)
{
	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			hold(1, 1000 + i);
			free(kept[1]);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}

/* Holds the first size, then executes this program with the others. */
static int chain(char **argv)
{
	hold(0, atol(argv[2]));
	say(atol(argv[2]));
	argv[2] = "chain";
	argv[1] = argv[0];
	execv("/proc/self/exe", argv + 1);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "loop"))
		return loop(atoi(argv[2]));
	if (argc > 1 && !strcmp(argv[1], "chain"))
		return argc == 2 ? 0 : chain(argv);
	if (argc > 2 && !strcmp(argv[1], "fork")) {
		if (fork() == 0)
			_exit(chain(argv));
		return wait(NULL) < 0;
	}
	if (argc > 2 && !strcmp(argv[1], "nest")) {
		if (fork() == 0) {
			if (fork() == 0) {
				hold(0, atol(argv[2]));
				_exit(0);
			}
			wait(NULL);
			argv[2] = "0";
			_exit(chain(argv));
		}
		return wait(NULL) < 0;
	}
	if (argc > 2 && !strcmp(argv[1], "kill"))
		return together(0, argv + 2, argc - 2, 1);
	return argc > 2 ? together(atol(argv[1]), argv + 2, argc - 2, 0) : 2;
}
