/*
 * compute N: N rounds of arithmetic over 256 KiB, with one block allocated and
 * freed every thousand rounds; prints "seconds S". For make bench.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t table[32768];

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000;
	struct timespec start, end;
	uint64_t x = 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < rounds; i++) {
		if (i % 1000 == 0) {
			void *p = malloc(1000);
			__asm__ volatile("" : : "r"(p) : "memory");
			free(p);
		}
		for (size_t k = 0; k < 1024; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			table[x >> 49] += x;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	fprintf(stderr, "%llx\n", (unsigned long long)(x + table[7]));
	printf("seconds %.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
	return 0;
}
