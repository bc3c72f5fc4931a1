/*
 * Accounts for resident and swapped memory: every byte of every page counted in VmRSS or VmSwap
 * belongs to exactly one row.
 */
#ifndef PTMEM_MALLOC_ACCOUNT_H
#define PTMEM_MALLOC_ACCOUNT_H

#include "base/alloc.h"
#include "base/types.h"
#include "tracee/os/pagemap.h"

enum inspect_row {
	ROW_LIVE,            /* blocks in use, in heaps */
	ROW_MMAPPED,         /* blocks in use that malloc mapped separately */
	ROW_TCACHE, ROW_FASTBIN, ROW_UNSORTED, ROW_BIN, ROW_TOP, /* free */
	ROW_FREE_PAGES,      /* free: whole pages that an allocator other than glibc's keeps */
	ROW_OWN,             /* malloc's own: headers, padding, arenas, fenceposts */
	ROW_UNKNOWN_HEAP,    /* parts of heaps that could not be walked */
	ROW_PYTHON_LIVE,     /* blocks in use of Python's allocator */
	ROW_PYTHON_FREE,     /* free blocks in pools that have others in use */
	ROW_PYTHON_POOLS,    /* free pools */
	ROW_PYTHON_OWN,      /* headers of pools, what is left at the ends of pools and arenas */
	ROW_STACK, ROW_STACK_BEYOND, /* thread stacks: in use; touched below the stack pointer */
	ROW_TLS,             /* thread variables, and libc's descriptor of each thread */
	ROW_DATA,            /* data of the program and its libraries */
	ROW_TEXT,            /* code and constants, unchanged from the file */
	ROW_FILE,            /* mappings of other files */
	ROW_SHARED,          /* shared memory */
	ROW_PROFILER,        /* mapped by ptmem */
	ROW_ANONYMOUS,       /* mappings of unknown purpose */
	ROW_COUNT,
};
extern const char *const inspect_row_name[ROW_COUNT]; /* "live" */
extern const char *const inspect_row_text[ROW_COUNT]; /* "live heap blocks" */

struct inspect_bytes {
	uint64_t resident, swapped;
};

static inline void inspect_bytes_add(struct inspect_bytes *to, struct inspect_bytes b)
{
	to->resident += b.resident;
	to->swapped += b.swapped;
}

struct account {
	const struct resident *pages;
	size_t at;                      /* index of the range where the last look-up ended */
	struct inspect_bytes row[ROW_COUNT];
};

/* @pages must outlive @a. */
void account_init(struct account *a, const struct resident *pages);

/* The number of resident or swapped bytes in [@start, @end). Fast for ascending calls. */
struct inspect_bytes account_count(struct account *a, taddr_t start, taddr_t end);

/* The same for what lies in more than one range of pages. */
void account_add_parts(struct account *a, taddr_t start, taddr_t end, enum inspect_row row,
		       enum inspect_row file_row);

/* Adds these bytes to @row; those on pages that are identical to a file, to @file_row. */
static inline void account_add(struct account *a, taddr_t start, taddr_t end, enum inspect_row row,
			       enum inspect_row file_row)
{
	const struct page_run *r = a->at < a->pages->list.count ?
						&a->pages->list.data[a->at] : NULL;

	if (r && r->start <= start && end <= r->end && r->flags == PAGE_RESIDENT)
		a->row[row].resident += end - start;
	else
		account_add_parts(a, start, end, row, file_row);
}

/* Disjoint, ascending parts of the address space, each with the row that its pages belong to. */

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
