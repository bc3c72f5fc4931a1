/*
 * Two threads that produce, two that consume and keep the last 20,000 blocks. For
 * scripts/what_if_table.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE = 4096, BLOCKS = 150000, KEPT = 20000, PAIRS = 2 };

static void *queue[QUEUE];
static unsigned head, tail;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;

static void put(void *block)
{
	pthread_mutex_lock(&mutex);
	while (head - tail == QUEUE)
		pthread_cond_wait(&not_full, &mutex);
	queue[head++ % QUEUE] = block;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&mutex);
}

static void *take(void)
{
	pthread_mutex_lock(&mutex);
	while (head == tail)
		pthread_cond_wait(&not_empty, &mutex);
	void *block = queue[tail++ % QUEUE];

	pthread_cond_signal(&not_full);
	pthread_mutex_unlock(&mutex);
	return block;
}

static void *produce(void *arg)
{
	unsigned state = (unsigned)(size_t)arg;

	for (int i = 0; i < BLOCKS; i++) {
		state = state * 1664525u + 1013904223u;
		size_t size = 32 + (state >> 8) % 2000;

		put(memset(malloc(size), 1, size));
	}
	return NULL;
}

static void *consume(void *arg)
{
	void **kept = calloc(KEPT, sizeof(*kept)), *block;
	unsigned i = 0;

	(void)arg;
	while ((block = take())) {
		free(kept[i % KEPT]);
		kept[i++ % KEPT] = block;
	}
	for (unsigned k = 0; k < KEPT; k++)
		if (k % 4)
			free(kept[k]);
	return NULL;
}

int main(void)
{
	pthread_t producer[PAIRS], consumer[PAIRS];

	for (size_t i = 0; i < PAIRS; i++) {
		pthread_create(&producer[i], NULL, produce, (void *)(i + 1));
		pthread_create(&consumer[i], NULL, consume, NULL);
	}
	for (int i = 0; i < PAIRS; i++)
		pthread_join(producer[i], NULL);
	for (int i = 0; i < PAIRS; i++)
		put(NULL);
	for (int i = 0; i < PAIRS; i++)
		pthread_join(consumer[i], NULL);
	return 0;
}
