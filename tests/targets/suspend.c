/*
 * Stops its threads like a garbage collector: by a signal whose handler waits, and works on the
 * heap meanwhile. Threads are stopped anywhere, in malloc and around it. The collecting thread
 * needs no allocator lock that they may hold: it has its own blocks (an arena) and does not touch
 * theirs.
 *
 *	suspend [ROUNDS [BLOCKS]]
 */
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#define WORKERS 3

static pthread_t workers[WORKERS];
static sem_t stopped;
static volatile int is_over, goes_on;

static void on_stop(int sig)
{
	int saved = errno;
	(void)sig;
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sem_post(&stopped);
	while (!goes_on)
		sigsuspend(&all);
	sem_post(&stopped);
	errno = saved;
}

static void on_go(int sig)
{
	(void)sig;
}

static void *work(void *arg)
{
	void *block[16] = {0};
	uint64_t size[16];
	unsigned n = (unsigned)(uintptr_t)arg;
	while (!is_over) {
		unsigned i = n++ % 16;
		if (block[i])
			t_free(block[i], size[i]);
		size[i] = 24 + n % 200;
		block[i] = t_malloc(size[i]);
	}
	for (unsigned i = 0; i < 16; i++)
		if (block[i])
			t_free(block[i], size[i]);
	return NULL;
}

static void wait_for_all(void)
{
	for (int i = 0; i < WORKERS; i++)
		while (sem_wait(&stopped) != 0)
			;
}

/* Small enough for this thread's cache of free blocks: no lock is needed. */
static void collect(uint64_t blocks)
{
	void *p[7];
	for (uint64_t n = 0; n < blocks; n += 7) {
		for (int i = 0; i < 7; i++)
			p[i] = t_malloc(100);
		for (int i = 0; i < 7; i++)
			t_free(p[i], 100);
	}
}

int main(int argc, char **argv)
{
	uint64_t rounds = argument(argc, argv, 1, 100), blocks = argument(argc, argv, 2, 70000);
	struct sigaction stop = {.sa_handler = on_stop}, go = {.sa_handler = on_go};
	truth.has_threads = 1;
	sigfillset(&stop.sa_mask);
	sigaction(SIGUSR1, &stop, NULL);
	sigaction(SIGUSR2, &go, NULL);
	sem_init(&stopped, 0, 0);
	collect(7);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, work, (void *)(uintptr_t)i);
	for (uint64_t r = 0; r < rounds; r++) {
		goes_on = 0;
		for (int i = 0; i < WORKERS; i++)
			pthread_kill(workers[i], SIGUSR1);
		wait_for_all();
		collect(blocks);
		goes_on = 1;
		for (int i = 0; i < WORKERS; i++)
			pthread_kill(workers[i], SIGUSR2);
		wait_for_all();
	}
	is_over = 1;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	truth_report();
	return 0;
}
