/*
 * heads: a block's head in malloc's heap is not what its size demands, for a while, without harm: as if the functions
 * that ptmem takes for malloc's were others. Linked statically with glibc.
 */
#include "truth.h"

NOINLINE static void *again(size_t size)
{
	return malloc(size);
}

int main(void)
{
	size_t *volatile p = again(100);
	size_t head = p[-1];

	free(p);
	p[-1] = 0x1001; /* in the thread's cache */
	p = again(100);
	p[-1] = head;
	free(p);
	return write(STDOUT_FILENO, "done\n", 5) != 5;
}
