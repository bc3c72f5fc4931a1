/*
 * Memory: allocation that never fails (without memory the process ends, since ptmem could not
 * continue), growing arrays, and memory by the megabyte in huge pages.
 */
#ifndef PTMEM_BASE_ALLOC_H
#define PTMEM_BASE_ALLOC_H

#include <stdlib.h>
#include <string.h>

#include "base/types.h"

/* Allocation that never fails: without memory the process ends, since ptmem could not continue. */

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

/*
 * A typed growing array:
 *
 *	VEC(int) v = {0};
 *	*vec_add(&v) = 7;             // appends one, not zeroed
 *	for (size_t i = 0; i < v.count; i++) use(v.data[i]);
 *	vec_sort(&v, int_compare);
 *	size_t n = vec_search(&v, e, *e < 7); // for sorted data: the number of elements below 7
 *	vec_deinit(&v);
 */

#define VEC(type) struct { type *data; size_t count, capacity; }

#define vec_reserve(v, n) ((v)->data = xgrow((v)->data, &(v)->capacity, (n), sizeof(*(v)->data)))
#define vec_add(v) (vec_reserve(v, (v)->count + 1), &(v)->data[(v)->count++])
#define vec_deinit(v) (free((v)->data), (v)->data = NULL, (v)->count = (v)->capacity = 0)

/* vec_deinit of @v after @release, a statement about @e, for each element. */
#define vec_release(v, e, release)                                                        \
	do {                                                                              \
		for (size_t i_ = 0; i_ < (v)->count; i_++) {                              \
			__typeof__((v)->data) e = &(v)->data[i_];                         \
			release;                                                          \
		}                                                                         \
		vec_deinit(v);                                                            \
	} while (0)

/* Makes room for an element before element @i, not zeroed; returns a pointer to it. */
#define vec_insert(v, i)                                                              \
	(vec_reserve(v, (v)->count + 1),                                              \
	 memmove(&(v)->data[(i) + 1], &(v)->data[i],                                  \
		 ((v)->count++ - (i)) * sizeof(*(v)->data)), &(v)->data[i])

/* Removes element @i and moves the last one into its place. */
#define vec_take_swap(v, i) ((v)->data[i] = (v)->data[--(v)->count])

/* Adds all elements of @from to @v. */
#define vec_append(v, from)                                                               \
	do {                                                                              \
		for (size_t i_ = 0; i_ < (from)->count; i_++)                             \
			*vec_add(v) = (from)->data[i_];                                   \
	} while (0)

/* qsort() of @v, which may be empty. */
#define vec_sort(v, compare)                                                              \
	do {                                                                              \
		if ((v)->count > 1)                                                       \
			qsort((v)->data, (v)->count, sizeof(*(v)->data), compare);        \
	} while (0)

/*
 * Makes one element of neighbours in @v that belong together. bool @merge(T *to, T *from) adds the
 * element @from to @to, the last one that is kept, and releases it; false: they are different. With
 * !compare, equal ones are dropped.
 */
#define vec_merge(v, merge)                                                               \
	do {                                                                              \
		size_t kept_ = 0;                                                         \
		for (size_t i_ = 0; i_ < (v)->count; i_++)                                \
			if (!kept_ || !merge(&(v)->data[kept_ - 1], &(v)->data[i_]))      \
				(v)->data[kept_++] = (v)->data[i_];                       \
		(v)->count = kept_;                                                       \
	} while (0)

/*
 * The number of elements at the start of @v for which @is_before is true. @is_before is an
 * expression that uses @e, a pointer to an element. @v must be sorted: all elements for which it is
 * true come first.
 */
#define vec_search(v, e, is_before)                                            \
	({                                                                     \
		size_t low_ = 0, high_ = (v)->count;                           \
		while (low_ < high_) {                                         \
			size_t middle_ = low_ + (high_ - low_) / 2;            \
			const __typeof__(*(v)->data) *e = &(v)->data[middle_]; \
			if (is_before)                                         \
				low_ = middle_ + 1;                            \
			else                                                   \
				high_ = middle_;                               \
		}                                                              \
		low_;                                                          \
	})

/* The element of @v, ascending ranges from start to end, that contains @addr; or NULL. */
#define vec_find(v, addr)                                                      \
	({                                                                     \
		size_t at_ = vec_search(v, e_, e_->end <= (addr));             \
		at_ < (v)->count && (v)->data[at_].start <= (addr) ?           \
			&(v)->data[at_] : NULL;                                \
	})

/*
 * Memory by the megabyte, mapped and unmapped directly, in huge pages where available. Pages take
 * memory when they are first touched.
 */

#define HUGE_PAGE_SIZE ((size_t)2 << 20) /* if they have another size, it still works */

/* @size zeroed bytes, aligned to a huge page. Without memory the process ends. */
void *huge_alloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
/* The same, or NULL where no address space is left (RLIMIT_AS). */
void *huge_try_alloc(size_t size) __attribute__((malloc, alloc_size(1), warn_unused_result));
void huge_free(void *p, size_t size); /* @p may be NULL */

/* Requests huge pages for those that lie entirely within memory allocated elsewhere. */
void huge_advise(void *p, size_t size);

/* Touches every page of [p, p + size) without changing its contents. */
void huge_touch(void *p, size_t size);

#endif
