/*
 * releases [ROUNDS [THREADS]]: blocks are released by functions whose names say how; the program
 * prints what each of them released: its name, blocks, bytes. A realloc that grows a block releases
 * nothing, one that shrinks it bytes, but no block.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "noinline.h"

enum { BY_FREE, BY_OTHER, BY_SHRINKING, BY_ZERO, WAYS };

static const char *const names[WAYS] = {"by_free", "by_other", "by_shrinking", "by_zero"};
static uint64_t blocks[WAYS], bytes[WAYS];
static long rounds = 1000;

static void count(int way, size_t size)
{
	__atomic_fetch_add(&blocks[way], way != BY_SHRINKING, __ATOMIC_RELAXED);
	__atomic_fetch_add(&bytes[way], size, __ATOMIC_RELAXED);
}

NOINLINE static void by_free(void *p, size_t size)
{
	free(p);
	count(BY_FREE, size);
	NO_TAIL_CALL();
}

NOINLINE static void by_other(void *p, size_t size)
{
	free(p);
	count(BY_OTHER, size);
	NO_TAIL_CALL();
}

NOINLINE static void *by_growth(void *p, size_t size)
{
	void *q = realloc(p, size);

	if (!q)
		abort();
	NO_TAIL_CALL();
	return q;
}

NOINLINE static void *by_shrinking(void *p, size_t size, size_t less)
{
	void *q = realloc(p, size - less);

	if (!q)
		abort();
	count(BY_SHRINKING, less);
	NO_TAIL_CALL();
	return q;
}

NOINLINE static void by_zero(void *p, size_t size)
{
	void *volatile none = realloc(p, 0);

	if (none)
		abort();
	count(BY_ZERO, size);
	NO_TAIL_CALL();
}

static void *run(void *unused)
{
	(void)unused;
	for (long i = 0; i < rounds; i++) {
		size_t size = (size_t)(i % 50) * (i % 7);
		void *volatile p = malloc(size);

		if (!p)
			abort();
		if (i % 10 == 3)
			by_zero(p, size);
		else if (i % 5 == 2)
			by_other(by_shrinking(by_growth(p, size + 100), size + 100, 70), size + 30);
		else if (i % 2)
			by_other(p, size);
		else
			by_free(p, size);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[16];
	int threads = argc > 2 ? atoi(argv[2]) : 1;

	rounds = argc > 1 ? atol(argv[1]) : rounds;
	for (int i = 0; i < threads && i < 16; i++)
		if (pthread_create(&thread[i], NULL, run, NULL) != 0)
			return 1;
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(thread[i], NULL);
	for (int way = 0; way < WAYS; way++)
		printf("%s %llu %llu\n", names[way], (unsigned long long)blocks[way],
		       (unsigned long long)bytes[way]);
	return 0;
}
