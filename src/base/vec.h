/*
 * A typed growing array:
 *
 *	VEC(int) v = {0};
 *	*vec_add(&v) = 7;             // adds one, not zeroed
 *	for (size_t i = 0; i < v.count; i++) use(v.data[i]);
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

/* Takes element @i out; the last one moves into its place. */
#define vec_take_swap(v, i) ((v)->data[i] = (v)->data[--(v)->count])

#endif
