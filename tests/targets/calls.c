/*
 * calls N: makes N system calls that do nothing (getpid); prints "seconds S". The overhead of a
 * seccomp filter for other calls, for make bench.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000;
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < count; i++)
		getpid();
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("seconds %.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
	return 0;
}
