/*
 * Allocation that does not fail: see alloc.h. Sizes are overflow-checked.
 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
