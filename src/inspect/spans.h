/*
 * Parts of the address space, disjoint and ascending, each with the row of the account that its
 * pages belong to.
 */
#ifndef PTMEM_INSPECT_SPANS_H
#define PTMEM_INSPECT_SPANS_H

#include "base/vec.h"
#include "inspect/account.h"

#define SPAN_NO_HEAP UINT32_MAX

struct span {
	taddr_t start, end;
	enum inspect_row row, file_row; /* as account_add has them */
	uint32_t heap;                  /* number of a heap that divides it; SPAN_NO_HEAP */
};

struct spans {
	VEC(struct span) list;
};

/* Adds the parts of [@start, @end) that are in no span yet. */
void spans_add(struct spans *s, taddr_t start, taddr_t end, enum inspect_row row);
/* @heap: a number; none of it is in a span yet, or nothing is added. */
void spans_add_heap(struct spans *s, taddr_t start, taddr_t end, uint32_t heap);
void spans_deinit(struct spans *s);

/* The first span that ends after @addr: an index. */
size_t spans_find(const struct spans *s, taddr_t addr);

#endif
