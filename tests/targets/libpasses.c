/*
 * An allocator that ptmem knows nothing about, to be preloaded: it passes each call on to the C library's. So none of its functions
 * is a leaf, and only its own calls count. They begin with an instruction that a jump can replace, unless SHORT is defined: then they
 * stay at breakpoints, while libc's have pads.
 */
#include <stddef.h>

#include "noinline.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

#ifdef SHORT
#define BEGIN(n) ((void)0)
#else
static volatile unsigned long last;
#define BEGIN(n) (last = (n))
#endif

NOINLINE void *malloc(size_t size)
{
	BEGIN(1);
	void *p = __libc_malloc(size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE void *calloc(size_t count, size_t size)
{
	BEGIN(2);
	void *p = __libc_calloc(count, size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE void *realloc(void *p, size_t size)
{
	BEGIN(3);
	p = __libc_realloc(p, size);
	NO_TAIL_CALL();
	return p;
}

NOINLINE void free(void *p)
{
	BEGIN(4);
	__libc_free(p);
	NO_TAIL_CALL();
}
