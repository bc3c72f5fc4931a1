/*
 * The pages of a process by its page tables: those that exist in any way (present_find), and for
 * each mapping those that count in VmRSS and VmSwap (resident_read). PAGEMAP_SCAN (Linux 6.7)
 * takes time proportional to the number of pages, and identifies the zero page. Older kernels
 * report each address, existing or not: 3 s for a TiB.
 */
#ifndef PTMEM_TRACEE_OS_PAGEMAP_H
#define PTMEM_TRACEE_OS_PAGEMAP_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"
#include "tracee/os/maps.h"

/*
 * Finds the pages of a process that exist, in memory or swapped out. All others were never written
 * (or read), and hold nothing.
 *
 * PAGEMAP_SCAN (Linux 6.7) takes time proportional to the number of pages. Older kernels report
 * each address, existing or not: 3 s for a TiB. Then at least mappings without any page are
 * skipped. Internal to src/tracee.
 */

struct present_range {
	taddr_t start, end;
};

/* Receives pages, whole ones. */
typedef void pages_fn(void *ctx, taddr_t start, taddr_t end);

struct present {
	pid_t pid;
	int pagemap;         /* /proc/PID/pagemap; -1: cannot be read */
	bool may_scan;       /* use PAGEMAP_SCAN; false once the kernel has rejected it */
	bool has_empty;      /* the next result was read */
	VEC(struct present_range) empty; /* ascending: mappings without any page */
};

/* @may_scan: false = never use PAGEMAP_SCAN. The caller closes *out. */
void present_open(pid_t pid, bool may_scan, struct present *out);
void present_close(struct present *p);

/*
 * Calls @fn for the existing parts of [@start, @end), which is in one private mapping: whole pages,
 * ascending; adjacent ones may be reported separately. If unknown, a part counts as existing.
 */
void present_find(struct present *p, taddr_t start, taddr_t end, pages_fn *fn, void *ctx);
/*
 * Likewise for those that are in huge pages, but the huge page of zeros, which counts nowhere.
 * -errno if the kernel cannot tell: then some may have been reported.
 */
int present_find_huge(struct present *p, taddr_t start, taddr_t end, pages_fn *fn, void *ctx);

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

enum page_flag {
	PAGE_RESIDENT = 1, /* counts in VmRSS */
	PAGE_SWAPPED = 2,  /* counts in VmSwap */
	PAGE_OF_FILE = 4,  /* resident: belongs to a file or shared memory, not a private copy */
};

/* Adjacent pages of one kind. */
struct page_run {
	taddr_t start, end;
	uint32_t flags;
};

struct resident {
	struct maps maps;
	VEC(struct page_run) list; /* ascending, disjoint, each within one mapping */
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

/*
 * Which private pages a process writes to while it runs, by asynchronous write protection (Linux
 * 6.7; userfaultfd(2), ioctl PAGEMAP_SCAN): the first write to a protected page removes its
 * protection, in the kernel, and the process goes on. It can notice the time of these page faults,
 * and their number. Nothing is left once the file is closed, which the kernel does if ptmem dies.
 */
struct written_pages {
	pid_t pid;
	int uffd, pagemap;                /* -1 = closed */
	VEC(struct present_range) list;   /* ascending: mappings that are watched */
};

/*
 * Takes over @uffd, a userfaultfd of @pid that no call was made to, also if it fails. -errno:
 * -EINVAL if the kernel cannot do it.
 */
int written_pages_begin(pid_t pid, int uffd, struct written_pages *out);
void written_pages_end(struct written_pages *w);
/*
 * Calls @fn, ascending, for the pages that are present or swapped out and were written since the
 * last call, or were not watched then; protects them first. -errno.
 */
int written_pages_next(struct written_pages *w, pages_fn *fn, void *ctx);
/*
 * When the process has been stopped: resident_read, and calls @unchanged, ascending, for pages that
 * were reported and not written since; not for all of these. They are listed by listing the others,
 * so this takes less time where they are most.
 */
int resident_read_watched(const struct written_pages *w, struct resident *out, pages_fn *unchanged,
			  void *ctx);

#endif
