/*
 * peaks: a large block lives all the time; parse() has 100 bytes, and then 90,000, which are less
 * than a hundredth of it. Then grow() makes a block larger ten times, and main() kills itself if
 * there is an argument.
 */
#include <signal.h>
#include <stdlib.h>

#include "noinline.h"

static char *volatile sink;

static NOINLINE void *base(size_t n)
{
	sink = malloc(n);
	NO_TAIL_CALL();
	return sink;
}

static NOINLINE void parse(size_t n)
{
	sink = malloc(n);
	free(sink);
	NO_TAIL_CALL();
}

static NOINLINE void grow(void)
{
	char *p = NULL;

	for (size_t n = 1; n <= 10; n++)
		sink = p = realloc(p, n * 8);
	free(p);
}

int main(int argc, char **argv)
{
	void *p = base(10000000);

	(void)argv;
	parse(100);
	parse(90000);
	grow();
	free(p);
	return argc > 1 ? raise(SIGKILL) : 0;
}
