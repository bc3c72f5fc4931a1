/*
 * A single thread that frees PER_SIZE blocks of each of SIZES sizes, and then damages its cache of
 * them. Prints "ready FREED", the number of freed blocks, and waits for the end of standard input;
 * without an argument nothing is damaged.
 *
 *	link N SIZES    writes into the freed block N
 *	first SIZES     makes a damaged link the first of its list
 *	last SIZES      empties a list that still has a first block
 *	count SIZES     counts one block too many
 *
 * expect: the thread's variables also point to blocks that only have the size of a cache.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES 20
#define PER_SIZE 7
#define CACHE_BYTES 640u
#define CACHE_BINS 64

static __thread char *volatile first, *volatile zeros, *volatile ones;
static __thread struct {
	uint16_t count[CACHE_BINS];
	void *first[CACHE_BINS];
} *volatile numbers, *volatile pointers;

static size_t *block[SIZES * PER_SIZE];

static void make_likenesses(void)
{
	first = malloc(1);
	zeros = calloc(1, CACHE_BYTES);
	ones = malloc(CACHE_BYTES);
	numbers = malloc(CACHE_BYTES);
	pointers = malloc(CACHE_BYTES);
	if (!first || !zeros || !ones || !numbers || !pointers)
		_exit(1);
	memset(ones, 0xff, CACHE_BYTES);
	memset(numbers, 0, CACHE_BYTES);
	numbers->count[3] = 1;
	for (size_t i = 0; i < CACHE_BINS; i++) {
		pointers->count[i] = 1;
		pointers->first[i] = i % 2 ? zeros : ones;
	}
}

/* Of size n there are blocks n, n + sizes, n + 2 * sizes, ...; the last was freed last. */
static size_t size_of(size_t n)
{
	return 24 + 16 * n;
}

static void spoil(const char *what, size_t n, size_t sizes)
{
	void *volatile taken = NULL;
	size_t last = (PER_SIZE - 1) * sizes;

	if (strcmp(what, "link") == 0) {
		*block[n] = 5;
	} else if (strcmp(what, "first") == 0) {
		*block[last] = 5;
		taken = malloc(size_of(0));
	} else if (strcmp(what, "last") == 0) {
		*block[0] = 5;
		for (size_t i = 0; i < PER_SIZE; i++)
			taken = malloc(size_of(0));
	} else if (strcmp(what, "count") == 0) {
		size_t *cache = (size_t *)first;

		/* the cache was allocated before */
		while (cache[-1] != (CACHE_BYTES + 16) + 1)
			cache -= 2;
		++*(uint16_t *)cache;
	}
	(void)taken;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t n = strcmp(what, "link") == 0 ? (size_t)atoi(argv[2]) : 0;
	size_t sizes = argc > 2 ? (size_t)atoi(argv[argc - 1]) : SIZES;
	char text[64];

	make_likenesses();
	for (size_t i = 0; i < sizes * PER_SIZE; i++)
		block[i] = malloc(size_of(i % sizes));
	for (size_t i = 0; i < sizes * PER_SIZE; i++)
		free(block[i]);
	spoil(what, n, sizes);
	snprintf(text, sizeof(text), "ready %zu\n", sizes * PER_SIZE);
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return 1;
	while (read(STDIN_FILENO, text, sizeof(text)) > 0)
		;
	_exit(0);
}
