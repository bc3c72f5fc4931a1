/*
 * Which pages of a process's memory exist, in memory or swapped out: the others never were
 * written (or read), and hold nothing.
 *
 * The kernel is asked for them (PAGEMAP_SCAN, Linux 6.7), which takes as long as there are
 * pages. Before that it reported each address, existing or not: 3 s for a TiB. Then at least
 * mappings without any page are passed over. Internal to src/tracee.
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
	bool may_scan;       /* by PAGEMAP_SCAN, unless the kernel has shown that it has none */
	bool has_empty;      /* the next was read */
	VEC(struct present_range) empty; /* ascending: mappings without any page */
};

/* @may_scan: false does without PAGEMAP_SCAN. The caller closes *out. */
void present_open(pid_t pid, bool may_scan, struct present *out);
void present_close(struct present *p);

/*
 * Calls @fn for the parts of [@start, @end), which lies in one private mapping, that exist: whole
 * pages, ascending; neighbours may come apart. What is unknown counts as existing.
 */
void present_find(struct present *p, taddr_t start, taddr_t end,
		  void (*fn)(void *ctx, taddr_t start, taddr_t end), void *ctx);

#endif
