/*
 * A sorted array whose elements have parents. Consider a sweep from low to high addresses with a
 * stack of open ranges: a range's parent is the range below it on the stack when it is pushed. A
 * range is popped only when a later one begins at or after its end. So everything that contains an
 * address is in the chain of parents of the last range that begins at or before it, even if ranges
 * overlap without nesting.
 */
#include "symbols/ranges.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/vec.h"

void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, uint32_t value)
{
	if (lo >= hi)
		return;
	*vec_add(r) = (struct range){.lo = lo, .hi = hi, .value = value};
	r->is_sorted = false;
}

/* Outer before inner: lower start, then higher end, then lower value. */
static int compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi > b->hi ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

void ranges_sort(struct ranges *r)
{
	if (r->count)
		qsort(r->data, r->count, sizeof(*r->data), compare);
	uint32_t top = 0;
	for (size_t i = 0; i < r->count; i++) {
		while (top && r->data[top - 1].hi <= r->data[i].lo)
			top = r->data[top - 1].parent;
		r->data[i].parent = top;
		top = (uint32_t)i + 1;
	}
	r->is_sorted = true;
}

static const struct range *first_holding(const struct ranges *r, uint32_t index, uint64_t addr)
{
	while (index && r->data[index - 1].hi <= addr)
		index = r->data[index - 1].parent;
	return index ? &r->data[index - 1] : NULL;
}

const struct range *ranges_find(const struct ranges *r, uint64_t addr)
{
	CHECK(r->is_sorted || r->count == 0);
	return first_holding(r, (uint32_t)vec_search(r, e, e->lo <= addr), addr);
}

const struct range *ranges_outer(const struct ranges *r, const struct range *inner, uint64_t addr)
{
	return first_holding(r, inner->parent, addr);
}

void ranges_deinit(struct ranges *r)
{
	vec_deinit(r);
}
