/*
 * Fragments the heaps of several arenas, then executes commands, one letter each, from standard
 * input, and answers each with a line:
 *
 *	t  malloc_trim(0)
 *	c  damages headers of chunks
 *	q  ends
 *
 * expect: the first line is "ready LIVE BLOCKS MMAPPED": bytes and number of its blocks in heaps,
 * and how many are mapped separately.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
#define BLOCKS 4000
#define MMAPPED 5

static pthread_barrier_t is_ready;
static size_t bytes[THREADS + 1], blocks[THREADS + 1];
static char *held[THREADS + 1][BLOCKS];
static void *large[MMAPPED];

/* One in @kept stays. */
static void fragment(size_t n, unsigned kept)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t size = 24 + (i * 37 + n * 11) % 3000;

		held[n][i] = malloc(size);
		memset(held[n][i], 1, size);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (i % kept) {
			free(held[n][i]);
			held[n][i] = NULL;
		} else {
			bytes[n] += malloc_usable_size(held[n][i]);
			blocks[n]++;
		}
	}
}

static void *work(void *arg)
{
	fragment((size_t)(uintptr_t)arg, 41);
	pthread_barrier_wait(&is_ready);
	for (;;)
		pause();
	return NULL;
}

static void spoil(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		if (!held[0][i])
			continue;
		size_t *head = (size_t *)held[0][i] - 1;

		*head = i % 3 == 0 ? 0 : i % 3 == 1 ? SIZE_MAX : *head + 64;
	}
}

static void answer(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

int main(void)
{
	pthread_t thread;
	char text[128], letter;
	size_t live = 0, count = 0;

	pthread_barrier_init(&is_ready, NULL, THREADS + 1);
	for (size_t i = 1; i <= THREADS; i++)
		pthread_create(&thread, NULL, work, (void *)(uintptr_t)i);
	fragment(0, 61);
	for (size_t i = 0; i < MMAPPED; i++) {
		if (i % 2)
			large[i] = malloc(300000 + i * 5000);
		else if (posix_memalign(&large[i], 64 << 2 * i, 300000) != 0)
			return 1;
		memset(large[i], 1, 100);
	}
	pthread_barrier_wait(&is_ready);
	for (size_t i = 0; i <= THREADS; i++) {
		live += bytes[i];
		count += blocks[i];
	}
	snprintf(text, sizeof(text), "ready %zu %zu %d\n", live, count, MMAPPED);
	answer(text);
	while (read(STDIN_FILENO, &letter, 1) == 1 && letter != 'q') {
		if (letter == 't')
			malloc_trim(0);
		else if (letter == 'c')
			spoil();
		answer("done\n");
	}
	_exit(0);
}
