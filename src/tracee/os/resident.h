/*
 * The mappings of a process with the pages that count in VmRSS and VmSwap (proc(5)), by its page
 * tables. The process must be stopped, or the two do not fit together.
 *
 * The kernel's counters after VmRSS are exact since Linux 6.17 only; before, each CPU or thread
 * keeps a part of them to itself for a while. The page tables are always exact, so they decide:
 *
 *	counted     pages that are present in /proc/PID/pagemap, per mapping as many as smaps
 *	            reports as Rss
 *	not counted the page of zeros, mapped where memory was read and never written; pages
 *	            of devices and of the kernel (vvar); huge pages of hugetlbfs
 *
 * Linux 6.7 says which is the page of zeros (PAGEMAP_SCAN). Before, a present page that is neither
 * a file's nor this process's alone, and that holds only zeros, is taken for it.
 */
#ifndef PTMEM_TRACEE_OS_RESIDENT_H
#define PTMEM_TRACEE_OS_RESIDENT_H

#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/maps.h"

enum page_flag {
	PAGE_RESIDENT = 1, /* counts in VmRSS */
	PAGE_SWAPPED = 2,  /* counts in VmSwap */
	PAGE_OF_FILE = 4,  /* resident: a file's or shared memory's, no private copy */
};

/* Adjacent pages of one kind. */
struct page_range {
	taddr_t start, end;
	uint32_t flags;
};

struct resident {
	struct maps maps;
	VEC(struct page_range) list; /* ascending, disjoint, each within one mapping */
	uint64_t resident, swapped;  /* bytes in list */
	/*
	 * bytes in list minus what smaps reports, of mappings where they differ: something outside
	 * of the process changed its pages meanwhile
	 */
	int64_t differing;
};

/* Reads all of @pid. -errno: -ESRCH when it has no memory any more. resident_deinit frees @out. */
int resident_read(pid_t pid, struct resident *out);
void resident_deinit(struct resident *p);

/* The range that holds @addr or the first one after it: an index, list.count = none. */
size_t resident_find(const struct resident *p, taddr_t addr);

#endif
