/*
 * Blocks of eight threads, released by others, half of which have ended; aligned blocks; large ones,
 * of which another thread releases one. Then it writes how many there are to the file "blocks", and
 * waits.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define ENDED 4 /* of them */
#define BLOCKS 2000
#define ALIGNED 60
#define LARGE 6

static void *block[THREADS][BLOCKS], *aligned[ALIGNED], *large[LARGE];
static pthread_barrier_t all, rest; /* threads; those that do not end, and the main thread */

static void release(void **p)
{
	free(*p);
	*p = NULL;
}

static void *touched(void *p)
{
	if (p)
		memset(p, 1, 8);
	return p;
}

static size_t size_of(size_t thread, size_t i)
{
	size_t n = thread * BLOCKS + i;

	return n % 100 ? 8 + n * 7919 % 2000 : 8 + n * 7919 % 300000;
}

static void *work(void *arg)
{
	size_t own = (size_t)(uintptr_t)arg, next = (own + 1) % THREADS;

	for (size_t i = 0; i < BLOCKS; i++)
		block[own][i] = touched(malloc(size_of(own, i)));
	pthread_barrier_wait(&all);
	for (size_t i = 0; i < BLOCKS; i += 3)
		release(&block[next][i]);
	pthread_barrier_wait(&all);
	for (size_t i = 1; i < BLOCKS; i += 6)
		release(&block[own][i]);
	if (own == 0)
		release(&large[0]);
	if (own < ENDED)
		return NULL;
	pthread_barrier_wait(&rest);
	for (;;)
		pause();
}

static size_t count(void *const *p, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += p[i] != NULL;
	return found;
}

static void write_count(void)
{
	size_t n = count(block[0], sizeof(block) / sizeof(void *)) + count(aligned, ALIGNED) +
		   count(large, LARGE);
	FILE *file = fopen("blocks", "w");

	fprintf(file, "%zu\n", n);
	fclose(file);
}

int main(void)
{
	static const size_t sizes[LARGE] = {(size_t)20 << 20, (size_t)17 << 20, (size_t)100 << 20,
					    (size_t)3 << 30, 150000, (size_t)2 << 20};
	pthread_t thread[THREADS];

	pthread_barrier_init(&all, NULL, THREADS);
	pthread_barrier_init(&rest, NULL, THREADS - ENDED + 1);
	for (size_t i = 0; i < LARGE; i++)
		large[i] = touched(malloc(sizes[i]));
	for (size_t i = 0; i < ALIGNED; i++)
		aligned[i] = touched(memalign((size_t)16 << i % 22, 8 + i * 5003 % 90000));
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (size_t i = 0; i < ENDED; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_wait(&rest);
	for (size_t i = 2; i < BLOCKS; i += 9)
		release(&block[1][i]);
	for (size_t i = 0; i < ALIGNED; i += 4)
		release(&aligned[i]);
	write_count();
	for (;;)
		pause();
}
