/*
 * Finds the pages of a process that exist, in memory or swapped out. All others were never written
 * (or read), and hold nothing.
 *
 * PAGEMAP_SCAN (Linux 6.7) takes time proportional to the number of pages. Older kernels report
 * each address, existing or not: 3 s for a TiB. Then at least mappings without any page are
 * skipped. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_OS_PAGEMAP_H
#define PTMEM_TRACEE_OS_PAGEMAP_H

#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"

struct present_range {
	taddr_t start, end;
};

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
void present_find(struct present *p, taddr_t start, taddr_t end,
		  void (*fn)(void *ctx, taddr_t start, taddr_t end), void *ctx);

#endif
