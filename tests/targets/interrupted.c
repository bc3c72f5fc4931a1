/*
 * A handler that maps a page wherever it interrupts its thread, which is in or around allocation
 * functions most of the time:
 *
 *	interrupted SIGNALS
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

static atomic_int handled, is_done;
static int wanted;
static pthread_t main_thread;
static void *volatile sink;

static NOINLINE void handler(int sig)
{
	(void)sig;
	if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(90);
	handled++;
}

static void *send(void *arg)
{
	(void)arg;
	for (int i = 0; i < wanted; i++) {
		pthread_kill(main_thread, SIGUSR1);
		while (handled <= i)
			usleep(50);
	}
	is_done = 1;
	return NULL;
}

static NOINLINE void allocate(size_t size)
{
	void *p = malloc(size), *q = calloc(1, size);
	sink = p = realloc(p, 2 * size);
	free(q);
	free(p);
}

static NOINLINE void loop(void)
{
	for (size_t i = 0; !is_done; i++)
		allocate(1 + i % 500);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t sender;
	wanted = argc > 1 ? atoi(argv[1]) : 100;
	main_thread = pthread_self();
	sigaction(SIGUSR1, &sa, NULL);
	if (pthread_create(&sender, NULL, send, NULL) != 0)
		return 1;
	loop();
	pthread_join(sender, NULL);
	return handled != wanted;
}
