/* Disjoint, ascending parts of the address space, each with the row that its pages belong to. */
#ifndef PTMEM_INSPECT_SPANS_H
#define PTMEM_INSPECT_SPANS_H

#include "base/vec.h"
#include "inspect/account.h"

#define SPAN_NO_HEAP UINT32_MAX
#define SPAN_SLABS (UINT32_MAX - 1) /* slabs divide it */
#define SPAN_PYTHON (UINT32_MAX - 2) /* those of Python's allocator */

struct span {
	taddr_t start, end;
	enum inspect_row row, file_row; /* rows, as for account_add */
	uint32_t heap;                  /* its heap's number, or SPAN_NO_HEAP */
};

struct spans {
	VEC(struct span) list;
};

/* Adds the parts of [@start, @end) that no span covers yet. */
void spans_add(struct spans *s, taddr_t start, taddr_t end, enum inspect_row row);
/* Adds a span of heap number @heap; adds nothing if any of it is covered already. */
void spans_add_heap(struct spans *s, taddr_t start, taddr_t end, uint32_t heap);
void spans_deinit(struct spans *s);

/* The index of the first span that ends above @addr. */
size_t spans_find(const struct spans *s, taddr_t addr);

#endif
