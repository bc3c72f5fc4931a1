/*
 * busy_exit ROUNDS HOW: threads allocate and free all the time, while the process ends. What they
 * hold is in thread-local storage; the last block, perhaps in a register or on the stack.
 *
 * expect: no block is lost.
 *
 *	HOW    _exit (by main) | exit (by main) | thread (exit, by another thread)
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "noinline.h"

#define THREADS 4
#define HELD 64

static __thread void *held[HELD];
static atomic_ulong done[THREADS];

NOINLINE static void *keep(void)
{
	void *block = malloc(500);

	NO_TAIL_CALL();
	return block;
}

static void *work(void *arg)
{
	atomic_ulong *rounds = arg;

	for (unsigned i = 0;; i++) {
		free(held[i % HELD]);
		held[i % HELD] = keep();
		atomic_fetch_add(rounds, 1);
	}
	return NULL;
}

static void await(unsigned long rounds)
{
	for (int i = 0; i < THREADS; i++)
		while (atomic_load(&done[i]) < rounds)
			usleep(100);
}

static unsigned long rounds;

static void *leave(void *arg)
{
	await(rounds);
	exit(arg != NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 90;
	rounds = strtoul(argv[1], NULL, 10);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, &done[i]);
	if (strcmp(argv[2], "thread") == 0) {
		pthread_create(&thread, NULL, leave, NULL);
		for (;;)
			pause();
	}
	await(rounds);
	if (strcmp(argv[2], "_exit") == 0)
		_exit(0);
	exit(0);
}
