/*
 * live N PATHS: allocates N blocks over PATHS call paths of seven calls each and
 * keeps them all. For the memory rows of make bench.
 */
#include <stdio.h>
#include <stdlib.h>

static void step(unsigned level, unsigned long path);

#define STEP(n)                                                        \
	__attribute__((noinline)) static void step_##n(unsigned level, unsigned long path) \
	{                                                              \
		step(level, path);                                     \
		__asm__ volatile("");                                  \
	}
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)
STEP(6)
STEP(7)

static void **kept;
static unsigned long count;

__attribute__((noinline)) static void step(unsigned level, unsigned long path)
{
	static void (*const steps[])(unsigned, unsigned long) = {step_0, step_1, step_2, step_3,
								 step_4, step_5, step_6, step_7};
	if (level == 0)
		kept[count++] = malloc(16 + count % 100);
	else
		steps[path & 7](level - 1, path >> 3);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned long paths = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	kept = calloc(n + 1, sizeof(*kept));
	if (!kept || paths < 1)
		return 2;
	for (unsigned long i = 0; i < n; i++)
		step(7, i % paths);
	printf("%lu blocks\n", count);
	return 0;
}
