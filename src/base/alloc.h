/* Allocation that never fails: without memory the process ends, since ptmem could not continue. */
#ifndef PTMEM_BASE_ALLOC_H
#define PTMEM_BASE_ALLOC_H

#include "base/types.h"

/* libiberty, which we link, has functions of these names, some with different parameters. */
#define xmalloc ptmem_xmalloc
#define xcalloc ptmem_xcalloc
#define xrealloc ptmem_xrealloc
#define xstrdup ptmem_xstrdup
#define xstrndup ptmem_xstrndup
#define xasprintf ptmem_xasprintf
#define xmemdup ptmem_xmemdup

void *xmalloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3), returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) ATTR_PRINTF(1, 2) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t size) __attribute__((malloc, returns_nonnull));

/*
 * Makes room for @count elements of @size bytes in the array @p, whose size is *@capacity elements.
 * All arrays grow by this policy: by half.
 */
void *xgrow(void *p, size_t *capacity, size_t count, size_t size);

#endif
