/*
 * Hits breakpoints at known depths, through functions of the C library that call back. For
 * unwinders, built with and without CFI, with glibc and musl.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

void stop(void);
__asm__(".text\n.globl stop\n.type stop,@function\nstop:\n	int3\n	ret\n.size stop,.-stop\n");

#define NOINLINE __attribute__((noinline))
#define HERE() __asm__ volatile("" ::: "memory")

NOINLINE int compare(const void *a, const void *b)
{
	stop();
	HERE();
	return *(const int *)a - *(const int *)b;
}

NOINLINE void sort(void)
{
	int numbers[2] = {1, 2};

	qsort(numbers, 2, sizeof(numbers[0]), compare);
	HERE();
}

NOINLINE void handler(int number)
{
	stop();
	HERE();
}

NOINLINE void search(void)
{
	int numbers[1] = {1};

	bsearch(numbers, numbers, 1, sizeof(numbers[0]), compare);
	HERE();
}

NOINLINE void *thread(void *arg)
{
	search();
	HERE();
	return arg;
}

NOINLINE void at_exit(void)
{
	stop();
	HERE();
}

int main(void)
{
	pthread_t t;

	signal(SIGUSR1, handler);
	atexit(at_exit);
	sort();
	search();
	raise(SIGUSR1);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	return 0;
}
