/*
 * near_peak: early holds more than late when a block is freed, less at the peak, which is 0.2 % higher.
 */
#include "truth.h"

/* Grows, by steps. */
NOINLINE static void *early(size_t size)
{
	char *p = NULL;

	for (size_t i = 1; i <= 100; i++)
		p = realloc(p, size / 100 * i);
	return p;
}

NOINLINE static void *late(size_t size)
{
	void *p = malloc(size);

	NO_TAIL_CALL();
	return p;
}

int main(void)
{
	void *p[] = {early(1000000), late(999000)};

	free(late(10));
	void *more = late(4000);

	free(more);
	free(p[0]);
	free(p[1]);
	return 0;
}
