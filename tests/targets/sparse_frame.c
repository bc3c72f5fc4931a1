/* A call across a large frame, most of which is never touched. */
#include <stdlib.h>

#include "noinline.h"

static void *volatile sink;

static NOINLINE void across_gap(void)
{
	volatile char gap[128 << 10];
	gap[0] = 1;
	sink = malloc(100);
	gap[1] = 1;
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		sink = malloc(100);
	across_gap();
	return 0;
}
