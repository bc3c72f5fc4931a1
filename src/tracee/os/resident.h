/*
 * The mappings of a process with the pages that count in VmRSS and VmSwap (proc(5)), by its page
 * tables. The process must be stopped, otherwise the two are inconsistent.
 *
 * The kernel's counters behind VmRSS are exact only since Linux 6.17; before, each CPU or thread
 * batches its updates. The page tables are always exact, so they are used:
 *
 *	counted     pages that are present in /proc/PID/pagemap, per mapping as many as smaps
 *	            reports as Rss
 *	not counted the zero page, mapped where memory was read but never written; pages
 *	            of devices and of the kernel (vvar); huge pages of hugetlbfs
 *
 * Linux 6.7 identifies the zero page (PAGEMAP_SCAN). On older kernels a present page of zeros that
 * is neither a file's nor exclusive to this process is taken for it.
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
	PAGE_OF_FILE = 4,  /* resident: belongs to a file or shared memory, not a private copy */
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
	uint64_t rss, swap;          /* VmRSS and VmSwap, bytes */
	/*
	 * bytes in list minus those in smaps, for mappings where they differ: another process has
	 * changed its pages meanwhile
	 */
	int64_t differing;
};

/*
 * Reads all mappings of @pid. -errno: -ESRCH if it has no memory any more. Free @out with
 * resident_deinit.
 */
int resident_read(pid_t pid, struct resident *out);
void resident_deinit(struct resident *p);

/* The index of the range that contains @addr or the first one after it; list.count = none. */
size_t resident_find(const struct resident *p, taddr_t addr);
/* The first address of those pages that is not below @addr; UINT64_MAX = none. */
taddr_t resident_next(const struct resident *p, taddr_t addr);

#endif
