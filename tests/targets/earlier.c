/*
 * Threads that allocate, resize and free, and pass blocks to each other. Executes commands, one
 * letter each, from standard input, and answers each with "BYTES BLOCKS" in use, exact while all
 * threads are parked, as they are initially.
 *
 *	g  the threads run
 *	p  they park
 *	l  leaks LEAKED blocks of LEAKED_SIZE bytes, which do not count in the answer
 *	f  frees everything; the threads must be parked
 *	q  ends
 *
 * Sizes are those of malloc_usable_size.
 */
#include "park.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 6
#define SLOTS 300
#define SHARED 64
#define LARGE 5
#define LEAKED 10
#define LEAKED_SIZE 1016u

static void *slot[THREADS][SLOTS], *large[LARGE];
static void *_Atomic shared[SHARED];
static atomic_long bytes, blocks;
static void *volatile hidden;

/* malloc may return a block larger than @size if no chunk could be split off. */
static void *made(void *p, size_t size)
{
	size_t usable = malloc_usable_size(p);

	if (size && usable != size)
		p = realloc(p, usable);
	bytes += (long)usable;
	blocks++;
	memset(p, 1, 8);
	return p;
}

static void release(void *p)
{
	bytes -= (long)malloc_usable_size(p);
	blocks -= p != NULL;
	free(p);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Up to 2 kB, sometimes up to 64 kB. */
static size_t some_size(uint64_t *seed)
{
	return 24 + 16 * (next_random(seed) % (next_random(seed) % 64 ? 128 : 4096));
}

static void change(void **p, uint64_t *seed)
{
	size_t size = some_size(seed);

	switch (next_random(seed) % 4) {
	case 0:
		release(*p);
		*p = NULL;
		break;
	case 1:
		if (*p)
			bytes -= (long)malloc_usable_size(*p);
		blocks -= *p != NULL;
		*p = made(realloc(*p, size), size);
		break;
	case 2:
		release(atomic_exchange(&shared[next_random(seed) % SHARED], made(malloc(size), size)));
		break;
	default:
		release(*p);
		*p = made(calloc(1, size), size);
	}
}

static void *work(void *arg)
{
	void **own = arg;
	uint64_t seed = (uint64_t)(own - slot[0]) + 1;

	for (;;) {
		park_if_asked();
		change(&own[next_random(&seed) % SLOTS], &seed);
	}
	return NULL;
}

__attribute__((noinline)) static void leak(void)
{
	for (int i = 0; i < LEAKED; i++) {
		void **p = malloc(LEAKED_SIZE);

		memset(p, 0, LEAKED_SIZE);
		*p = hidden; /* each is held by the next one, and the last by nothing */
		hidden = p;
	}
	hidden = NULL;
}

/* Clears what leak left on the stack. */
__attribute__((noinline)) static void clear_stack(void)
{
	volatile char space[4096];

	for (size_t i = 0; i < sizeof(space); i++)
		space[i] = 0;
}

static void free_all(void)
{
	for (size_t i = 0; i < (size_t)THREADS * SLOTS; i++) {
		release(slot[i / SLOTS][i % SLOTS]);
		slot[i / SLOTS][i % SLOTS] = NULL;
	}
	for (size_t i = 0; i < SHARED; i++)
		release(atomic_exchange(&shared[i], NULL));
	for (size_t i = 0; i < LARGE; i++) {
		release(large[i]);
		large[i] = NULL;
	}
}

static void answer(void)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%ld %ld\n", bytes, blocks);

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(1);
}

int main(void)
{
	must_park = 1; /* the threads begin with it */
	pthread_t thread;
	char letter;

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, slot[i]);
	for (size_t i = 0; i < LARGE; i++) /* large enough for its own mapping */
		large[i] = made(i % 2 ? malloc(300000 * i) : memalign(64u << i, 500000), 0);
	park_set(1, THREADS);
	answer();
	while (read(STDIN_FILENO, &letter, 1) == 1 && letter != 'q') {
		if (letter == 'g' || letter == 'p')
			park_set(letter == 'p', THREADS);
		else if (letter == 'l')
			leak();
		else if (letter == 'f')
			free_all();
		clear_stack();
		answer();
	}
	_exit(0);
}
