/*
 * Which pages of a process were accessed, read or written: the CPU sets a bit in the page table
 * entry. /proc/PID/clear_refs clears the bits, /proc/PID/smaps says for each mapping how many are
 * set (proc(5)).
 *
 * The kernel clears them without a flush of the TLB: a page whose translation is cached by a CPU
 * stays unaccessed for as long as it is. So they must be flushed after the bits are cleared.
 */
#ifndef PTMEM_TRACEE_OS_ACCESSED_H
#define PTMEM_TRACEE_OS_ACCESSED_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"

/* What madvise(2) was called with: it does nothing to memory that no file has. */
enum map_advice { ADVICE_NORMAL, ADVICE_RANDOM, ADVICE_SEQUENTIAL };

struct access_count {
	taddr_t start, end;
	bool is_anonymous;             /* private, writable, of no file or device */
	enum map_advice advice;
	uint64_t resident, accessed;   /* bytes */
	uint64_t huge;                 /* bytes in huge pages, each of which has one bit */
};
struct access_counts {
	VEC(struct access_count) list; /* of all mappings, ascending */
};

/* Which pages were touched, read or written, for a time. */
struct touched_range {
	taddr_t start, end; /* whole pages */
	bool is_sure;       /* each of its pages was touched; else some may have been */
};

struct touched_pages {
	VEC(struct touched_range) list; /* ascending, disjoint; what is in none was not touched */
	uint64_t resident, untouched;   /* bytes, of anonymous memory */
	uint64_t unresolved;            /* bytes in ranges that are not sure, but huge pages */
	uint64_t huge;                  /* bytes in huge pages that were touched, each as a whole */
	uint32_t rounds;
};
void touched_pages_deinit(struct touched_pages *p);

/* -errno. */
int accessed_clear(pid_t pid);
/* -errno; -ESRCH if the process has no memory any more. Free @out with vec_deinit. */
int accessed_read(pid_t pid, struct access_counts *out);

#endif
