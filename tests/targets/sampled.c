/*
 * sampled FUNCTION COUNT [THREADS]: each thread allocates 100 bytes COUNT times by FUNCTION, and frees them at
 * once.
 *	mixed   the functions take turns
 *	grow    realloc of a block: 100, 1000, 100000, 200 bytes
 *	cross   blocks of 3000 bytes are freed by another thread than the one that made them
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "noinline.h"

#define SIZE 100
#define SHARED 1024

static const char *const functions[] = {
	"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc",
};
#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

static const char *mode;
static long count;
static void *volatile nothing; /* of a constant compilers make malloc */
static void *shared[SHARED];

static NOINLINE void *allocate(size_t function)
{
	void *p = NULL;

	switch (function) {
	case 0: return malloc(SIZE);
	case 1: return calloc(10, SIZE / 10);
	case 2: return realloc(nothing, SIZE);
	case 3: return reallocarray(nothing, SIZE / 10, 10);
	case 4: return memalign(64, SIZE);
	case 5: return aligned_alloc(16, SIZE);
	case 6: return posix_memalign(&p, 64, SIZE) ? NULL : p;
	}
	return valloc(SIZE);
}

static NOINLINE void *grow(void)
{
	void *p = malloc(100);

	p = realloc(p, 1000);
	p = realloc(p, 100000);
	return realloc(p, 200);
}

static void cross(long i)
{
	void **place = &shared[(unsigned long)i * 7 % SHARED];

	free(__atomic_exchange_n(place, malloc(3000), __ATOMIC_SEQ_CST));
}

static void *run(void *arg)
{
	size_t function = 0;

	while (function < FUNCTIONS && strcmp(mode, functions[function]) != 0)
		function++;
	for (long i = 0; i < count; i++) {
		if (strcmp(mode, "cross") == 0) {
			cross(i);
			continue;
		}
		if (strcmp(mode, "mixed") == 0)
			function = (size_t)i % FUNCTIONS;
		void *volatile block = strcmp(mode, "grow") == 0 ? grow() : allocate(function);
		free(block);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	long threads = argc > 3 ? atol(argv[3]) : 0;

	if (argc < 3 || threads > 64)
		return 2;
	mode = argv[1];
	count = atol(argv[2]);
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (!threads)
		run(NULL);
	for (size_t i = 0; i < SHARED; i++)
		free(shared[i]);
	return 0;
}
