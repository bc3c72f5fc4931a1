/*
 * A library with its own markers, for requests.c; with MALLOC it is an allocator that announces its
 * blocks.
 */
#include <stddef.h>
#include <valgrind/valgrind.h>

#include "ptmem.h"

__attribute__((visibility("default"))) void marks_make(void *p, size_t size)
{
	if (size > 100)
		PTMEM_ALLOC(p, size);
	else
		VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, 0);
}

__attribute__((visibility("default"))) void marks_drop(void *p)
{
	VALGRIND_FREELIKE_BLOCK(p, 0);
}

#ifdef MALLOC
static char pool[1 << 24] __attribute__((aligned(16)));
static size_t used;

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	char *p = pool + __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, 0);
	PTMEM_ALLOC(p, size);
	return p;
}

__attribute__((visibility("default"))) void free(void *p)
{
	if (!p)
		return;
	VALGRIND_FREELIKE_BLOCK(p, 0);
	PTMEM_FREE(p);
}
#endif
