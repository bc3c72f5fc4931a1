/*
 * Memory by the megabyte: taken from the kernel and given back to it at once, in large
 * pages where there are some. Nothing is taken before it is touched.
 */
#ifndef PTMEM_BASE_LARGE_H
#define PTMEM_BASE_LARGE_H

#include "base/types.h"

#define LARGE_PAGE ((size_t)2 << 20) /* where they are of another size, nothing breaks */

/* @size bytes, all zero, that begin at a large page; or the process ends. */
void *large_map(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void large_unmap(void *p, size_t size); /* @p may be NULL */

/* Advises large pages for those that lie whole in memory that comes from elsewhere. */
void large_advise(void *p, size_t size);

/* Touches every page of [p, p + size), which changes nothing else. */
void large_touch(void *p, size_t size);

#endif
