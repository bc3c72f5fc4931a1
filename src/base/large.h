/*
 * Memory by the megabyte, mapped and unmapped directly, in huge pages where available. Pages take
 * memory when they are first touched.
 */
#ifndef PTMEM_BASE_LARGE_H
#define PTMEM_BASE_LARGE_H

#include "base/types.h"

#define LARGE_PAGE ((size_t)2 << 20) /* if they have another size, it still works */

/* @size zeroed bytes, aligned to a huge page. Without memory the process ends. */
void *large_map(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void large_unmap(void *p, size_t size); /* @p may be NULL */

/* Requests huge pages for those that lie entirely within memory allocated elsewhere. */
void large_advise(void *p, size_t size);

/* Touches every page of [p, p + size) without changing its contents. */
void large_touch(void *p, size_t size);

#endif
