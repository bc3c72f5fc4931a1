/*
 * naps N: sleeps N times for a millisecond; prints the CPU time of one such nap. What
 * waking up alone costs here, beside a sampler that wakes up as often.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000;
	const struct timespec nap = {0, 1000000};
	struct timespec cpu;
	for (int i = 0; i < count; i++)
		nanosleep(&nap, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("%.1f\n", ((double)cpu.tv_sec * 1e6 + (double)cpu.tv_nsec / 1e3) / count);
	return 0;
}
