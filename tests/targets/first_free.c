/*
 * Threads whose first call of the allocator is a free, of a block of another thread's: then a glibc
 * that makes a thread's cache when it needs one does so in free. No block is left.
 */
#include "truth.h"

#include <pthread.h>

#define BLOCKS 64

static void *block[BLOCKS];

static void *make(void *arg)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = t_malloc(40);
	return arg;
}

static void *release(void *arg)
{
	t_free(block[(uintptr_t)arg], 40);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, make, NULL);
	pthread_join(thread, NULL);
	for (uintptr_t i = 0; i < BLOCKS / 2; i++) {
		pthread_create(&thread, NULL, release, (void *)i);
		pthread_join(thread, NULL);
	}
	for (uintptr_t i = BLOCKS / 2; i < BLOCKS; i++)
		release((void *)i);
	truth_report();
	return 0;
}
