/*
 * For --heap-sample: repeats one pattern of allocations in many rounds, each of which gives an
 * estimate of its own. Before the blocks of a round are freed, a block of MARK bytes is allocated
 * and freed. At the end it prints the truth of each round, and keeps the blocks of the last one:
 *
 *	truth SIZE COUNT       live blocks at the mark; COUNT 0: allocated and freed again
 *	total SIZE COUNT       blocks of that size allocated in the round
 *
 *	samples MODE ROUNDS    one, sites, churn, realloc, large or threads
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "noinline.h"

#define MARK (1 << 20)
#define MAX_BLOCKS 40000

struct group {
	size_t size;
	int count;
};

static const struct group one[] = {{64, 2000}, {0, 0}};
static const struct group few[] = {{64, 25}, {0, 0}};
static const struct group sites[] = {
	{1, 4000}, {3, 2000}, {5, 1200}, {7, 900}, {9, 700}, {11, 600}, {13, 500}, {15, 400}, {17, 400}, {23, 300},
	{31, 200}, {33, 200}, {47, 150}, {63, 100}, {65, 100}, {99, 70}, {127, 50}, {255, 30}, {511, 20}, {1023, 10},
	{0, 0},
};
static const struct group large[] = {{2048, 100}, {4097, 60}, {12289, 30}, {500000, 3}, {0, 0}};

static void *block[MAX_BLOCKS];
static int blocks;

NOINLINE static void keep(size_t size)
{
	block[blocks++] = malloc(size);
}

NOINLINE static void mark(void)
{
	void *volatile p = malloc(MARK);
	free(p);
}

static void allocate(const struct group *g)
{
	for (; g->size; g++) {
		for (int i = 0; i < g->count; i++)
			keep(g->size);
	}
}

static void churn(void)
{
	for (int i = 0; i < 2000; i++) {
		void *volatile p = malloc(64);
		free(p);
	}
}

/* 200 blocks that grow by realloc, half of them to an odd size. */
static void grow(void)
{
	for (int i = 0; i < 200; i++) {
		void *p = NULL;

		for (size_t size = 16; size <= 2048; size *= 2)
			p = realloc(p, size);
		block[blocks++] = realloc(p, i % 2 ? 4096 : 777);
	}
}

#define THREADS 4
#define OF_THREAD 500

static void *allocate_part(void *part)
{
	for (int i = 0; i < OF_THREAD; i++)
		((void **)part)[i] = malloc(64);
	return NULL;
}

static void allocate_in_threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, allocate_part, &block[i * OF_THREAD]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	blocks = THREADS * OF_THREAD;
}

static void print_groups(const char *what, const struct group *g)
{
	for (; g->size; g++)
		printf("%s %zu %d\n", what, g->size, g->count);
}

static void print_truth(const char *mode, const struct group *groups)
{
	if (groups)
		print_groups("truth", groups);
	else if (strcmp(mode, "churn") == 0)
		print_groups("total", one);
	else if (strcmp(mode, "threads") == 0)
		printf("truth 64 %d\n", THREADS * OF_THREAD);
	else
		printf("truth 777 100\ntruth 4096 100\ntotal 16 200\ntotal 1024 200\ntotal 2048 200\n");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "one";
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	const struct group *groups = strcmp(mode, "one") == 0	? one :
				     strcmp(mode, "few") == 0	? few :
				     strcmp(mode, "sites") == 0 ? sites :
				     strcmp(mode, "large") == 0 ? large :
								  NULL;

	for (int round = 0; round < rounds; round++) {
		if (groups)
			allocate(groups);
		else if (strcmp(mode, "churn") == 0)
			churn();
		else if (strcmp(mode, "threads") == 0)
			allocate_in_threads();
		else
			grow();
		mark();
		if (round + 1 == rounds)
			break;
		while (blocks > 0)
			free(block[--blocks]);
	}
	print_truth(mode, groups);
	return 0;
}
