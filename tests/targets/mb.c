/*
 * mb N DEPTH [THREADS [loop]]: each thread makes N pairs of malloc and free, for each of them
 * anew DEPTH calls deep; with "loop", all of them in one loop below DEPTH calls. The program
 * prints the seconds that took: "seconds S". For make bench. With -DOPERATORS it calls the
 * functions that C++ containers call, operator new and the operator delete that is given the size.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef OPERATORS
void *_Znwm(size_t);
void _ZdlPvm(void *, size_t);
#define ALLOCATE(size) _Znwm(size)
#define RELEASE(p, size) _ZdlPvm(p, size)
#else
#define ALLOCATE(size) malloc(size)
#define RELEASE(p, size) free(p)
#endif

static long pairs, depth;
static int is_loop;

__attribute__((noinline)) static void pair(long i)
{
	size_t size = 16 + (size_t)(i & 63);
	void *p = ALLOCATE(size);
	__asm__ volatile("" : : "r"(p) : "memory");
	RELEASE(p, size);
}

__attribute__((noinline)) static void loop(void)
{
	for (long i = 0; i < pairs; i++) {
		size_t size = 16 + (size_t)(i & 63);
		void *p = ALLOCATE(size);
		__asm__ volatile("" : : "r"(p) : "memory");
		RELEASE(p, size);
	}
}

__attribute__((noinline)) static void descend(long n, long i)
{
	if (n > 1)
		descend(n - 1, i);
	else if (is_loop)
		loop();
	else
		pair(i);
	__asm__ volatile(""); /* no tail call: every level is a frame */
}

static void *run(void *unused)
{
	(void)unused;
	for (long i = 0; i < (is_loop ? 1 : pairs); i++)
		descend(depth, i);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	pairs = atol(argv[1]);
	depth = atol(argv[2]);
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	is_loop = argc > 4 && strcmp(argv[4], "loop") == 0;
	pthread_t thread[64];
	struct timespec start, end;
	if (threads < 1 || threads > 64)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread[i], NULL, run, NULL))
			return 1;
	run(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("seconds %.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
	return 0;
}
