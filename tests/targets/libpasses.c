/*
 * An allocator that ptmem knows nothing about, to be preloaded: it passes each call on to the C library's. So none of its functions
 * is a leaf, and only its own calls count. They begin with an instruction that a jump can replace.
 */
#include <stddef.h>

#include "noinline.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static volatile unsigned long last;

NOINLINE void *malloc(size_t size)
{
	last = 1;
	void *p = __libc_malloc(size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE void *calloc(size_t count, size_t size)
{
	last = 2;
	void *p = __libc_calloc(count, size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE void *realloc(void *p, size_t size)
{
	last = 3;
	p = __libc_realloc(p, size);
	NO_TAIL_CALL();
	return p;
}

NOINLINE void free(void *p)
{
	last = 4;
	__libc_free(p);
	NO_TAIL_CALL();
}
