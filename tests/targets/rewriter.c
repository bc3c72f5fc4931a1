/*
 * rewriter MIB: holds that many MiB in blocks of FIRST to LAST bytes, and
 * replaces them at random by others without end, so that headers of chunks are written all over the
 * heap. Each block has its address and its size at its ends, which are compared before it is freed.
 * Prints "ready" and the number of blocks, which stays the same but for one. SIGTERM ends it with
 * "right" if all blocks were.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	FIRST = 905,
	LAST = 1501,
	BURST = 64,
};

struct block {
	char *at;
	size_t size;
};

static volatile sig_atomic_t is_ended;
static unsigned long long seed = 1;

static void on_end(int sig)
{
	(void)sig;
	is_ended = 1;
}

static size_t pick(size_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(seed >> 33) % below;
}

static void make(struct block *b)
{
	b->size = FIRST + pick(LAST - FIRST);
	b->at = malloc(b->size);
	if (!b->at)
		exit(2);
	memcpy(b->at, &b->at, sizeof(b->at));
	memcpy(b->at + b->size - sizeof(b->size), &b->size, sizeof(b->size));
}

static int is_right(const struct block *b)
{
	return memcmp(b->at, &b->at, sizeof(b->at)) == 0 &&
	       memcmp(b->at + b->size - sizeof(b->size), &b->size, sizeof(b->size)) == 0;
}

int main(int argc, char **argv)
{
	size_t count = argc == 2 ? ((size_t)atol(argv[1]) << 20) / ((FIRST + LAST) / 2) : 0;
	struct block *block = count ? malloc(count * sizeof(*block)) : NULL;

	if (!block)
		return 2;
	signal(SIGTERM, on_end);
	for (size_t i = 0; i < count; i++)
		make(&block[i]);
	printf("ready %zu\n", count);
	fflush(stdout);
	while (!is_ended) {
		for (int i = 0; i < BURST; i++) {
			struct block *b = &block[pick(count)];

			if (!is_right(b))
				return 1;
			free(b->at);
			make(b);
		}
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	for (size_t i = 0; i < count; i++)
		if (!is_right(&block[i]))
			return 1;
	puts("right");
	return 0;
}
