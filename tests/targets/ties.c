/*
 * ties: sites of equal size in the program and three libraries, whose load order differs from the
 * order of their names, and from that of their calls. With LIBRARY, such a library.
 */
#include "truth.h"

#ifdef LIBRARY
NOINLINE void *LIBRARY(void)
{
	void *p = malloc(96);

	NO_TAIL_CALL();
	return p;
}
#else
void *tie_a(void);
void *tie_b(void);
void *tie_c(void);

int main(void)
{
	void *p[] = {tie_c(), tie_a(), malloc(96), tie_b(), malloc(96)};

	for (int i = 0; i < 5; i++)
		free(p[i]);
	return 0;
}
#endif
