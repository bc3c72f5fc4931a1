/*
 * Of what resident and swapped memory consists: each byte of each page that counts in VmRSS or
 * VmSwap belongs to one row.
 */
#ifndef PTMEM_INSPECT_ACCOUNT_H
#define PTMEM_INSPECT_ACCOUNT_H

#include "base/types.h"
#include "tracee/os/resident.h"

enum inspect_row {
	ROW_LIVE,            /* blocks in use, in heaps */
	ROW_MMAPPED,         /* blocks in use that have a mapping of their own */
	ROW_TCACHE, ROW_FASTBIN, ROW_UNSORTED, ROW_BIN, ROW_TOP, /* free */
	ROW_OWN,             /* the allocator's own: headers, padding, arenas, fenceposts */
	ROW_UNKNOWN_HEAP,    /* parts of heaps that could not be followed */
	ROW_STACK, ROW_STACK_BEYOND, /* of threads: in use; touched below the stack pointer */
	ROW_TLS,             /* variables of threads, and what libc keeps of each thread */
	ROW_DATA,            /* of program and libraries */
	ROW_TEXT,            /* code and constants, as they are in the files */
	ROW_FILE,            /* mappings of other files */
	ROW_SHARED,          /* shared memory */
	ROW_PROFILER,        /* mapped by ptmem */
	ROW_ANONYMOUS,       /* mappings of which nothing is known */
	ROW_COUNT,
};
extern const char *const inspect_row_name[ROW_COUNT]; /* "live" */
extern const char *const inspect_row_text[ROW_COUNT]; /* "live heap blocks" */

struct inspect_bytes {
	uint64_t resident, swapped;
};

struct account {
	const struct resident *pages;
	size_t at;                      /* the range where the last look-up ended */
	struct inspect_bytes row[ROW_COUNT];
};

/* @pages must outlive @a. */
void account_init(struct account *a, const struct resident *pages);

/* How many bytes of [@start, @end) count. Fast where calls ascend. */
struct inspect_bytes account_count(struct account *a, taddr_t start, taddr_t end);

/* Adds them to @row; those of pages that are as they are in a file to @file_row. */
void account_add(struct account *a, taddr_t start, taddr_t end, enum inspect_row row,
		 enum inspect_row file_row);

#endif
