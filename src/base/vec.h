/*
 * A typed growing array:
 *
 *	VEC(int) v = {0};
 *	*vec_add(&v) = 7;             // appends one, not zeroed
 *	for (size_t i = 0; i < v.count; i++) use(v.data[i]);
 *	size_t n = vec_search(&v, e, *e < 7); // for sorted data: the number of elements below 7
 *	vec_deinit(&v);
 */
#ifndef PTMEM_BASE_VEC_H
#define PTMEM_BASE_VEC_H

#include <stdlib.h>

#include "base/alloc.h"

#define VEC(type) struct { type *data; size_t count, capacity; }

#define vec_reserve(v, n) ((v)->data = xgrow((v)->data, &(v)->capacity, (n), sizeof(*(v)->data)))
#define vec_add(v) (vec_reserve(v, (v)->count + 1), &(v)->data[(v)->count++])
#define vec_deinit(v) (free((v)->data), (v)->data = NULL, (v)->count = (v)->capacity = 0)

/* Removes element @i and moves the last one into its place. */
#define vec_take_swap(v, i) ((v)->data[i] = (v)->data[--(v)->count])

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

#endif
