/*
 * Allocation that does not fail: see alloc.h. Sizes are overflow-checked.
 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

ATTR_NORETURN static void out_of_memory(void)
{
	log_error("out of memory");
	abort();
}

static void *checked(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		out_of_memory();
	return checked(realloc(p, bytes ? bytes : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
	char *s;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return s;
}

void *xmemdup(const void *p, size_t size)
{
	return memcpy(xmalloc(size), p, size);
}

void *xgrow(void *p, size_t *capacity, size_t count, size_t size)
{
	if (count <= *capacity)
		return p;
	size_t want = *capacity + *capacity / 2;
	if (want < count)
		want = count;
	if (want < 8)
		want = 8;
	p = xrealloc(p, want, size);
	*capacity = want;
	return p;
}

/*
 * Allocating memory costs more than filling it: the kernel clears each page, and the host of a
 * virtual machine may have to find it first (up to 2 s for 1 GiB). So code that stops a target
 * allocates beforehand. See alloc.h.
 */

void *huge_try_alloc(size_t size)
{
	size_t want = ROUND_UP(size, PAGE_SIZE_MIN);
	uint8_t *p = mmap(NULL, want + HUGE_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	uint8_t *start = (uint8_t *)ROUND_UP((uintptr_t)p, HUGE_PAGE_SIZE);

	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + want, HUGE_PAGE_SIZE - (size_t)(start - p));
	huge_advise(start, want);
	return start;
}

void *huge_alloc(size_t size)
{
	void *p = huge_try_alloc(size);

	if (!p) {
		log_error("out of memory");
		abort();
	}
	return p;
}

void huge_free(void *p, size_t size)
{
	if (p)
		munmap(p, ROUND_UP(size, PAGE_SIZE_MIN));
}

void huge_advise(void *p, size_t size)
{
	uintptr_t start = ROUND_UP((uintptr_t)p, HUGE_PAGE_SIZE);
	uintptr_t end = ROUND_DOWN((uintptr_t)p + size, HUGE_PAGE_SIZE);

	if (start < end)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void huge_touch(void *p, size_t size)
{
	volatile uint8_t *byte = p;

	for (size_t i = 0; i < size; i += PAGE_SIZE_MIN)
		byte[i] = byte[i];
}
