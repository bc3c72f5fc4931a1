/*
 * A variable owns a block and the blocks in that; a stack slot and a register have the same pointers
 * when it ends, as in any program that just uses them. The pointer to one block is below the stack
 * pointer, in the red zone.
 */
#include <unistd.h>

#include "noinline.h"

#include <stdlib.h>

enum { BLOCKS = 100, SIZE = 101 };

struct cache {
	void *slot[BLOCKS];
};

struct cache *cache;

NOINLINE static struct cache *make_cache(void)
{
	struct cache *c = calloc(1, sizeof(*c));

	NO_TAIL_CALL();
	return c;
}

NOINLINE static void *make_slot(void)
{
	void *p = malloc(SIZE);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void *make_local(void)
{
	void *p = malloc(SIZE);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void *make_below(void)
{
	void *p = malloc(SIZE);

	NO_TAIL_CALL();
	return p;
}

int main(void)
{
	void *volatile slots[BLOCKS];
	void *volatile local = make_local();
	struct cache *volatile used = cache = make_cache();

	for (int i = 0; i < BLOCKS; i++)
		slots[i] = used->slot[i] = make_slot();
	register struct cache *c = used;
	register void *first = slots[0];

	void *below = make_below();

	__asm__ volatile("mov %%rdx, -104(%%rsp)\n\txor %%edx, %%edx\n\tsyscall"
			 : "+d"(below)
			 : "a"(231), "D"(0), "b"(c), "S"(first)
			 : "rcx", "r11", "memory");
	return local != NULL;
}
