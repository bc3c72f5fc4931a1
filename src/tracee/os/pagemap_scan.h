/*
 * ioctl PAGEMAP_SCAN on /proc/PID/pagemap: ranges of pages by category, since Linux 6.7.
 */
#ifndef PTMEM_TRACEE_OS_PAGEMAP_SCAN_H
#define PTMEM_TRACEE_OS_PAGEMAP_SCAN_H

#include "base/types.h"

/* Categories: linux/fs.h. */
#define SCAN_FILE (UINT64_C(1) << 2)
#define SCAN_PRESENT (UINT64_C(1) << 3)
#define SCAN_SWAPPED (UINT64_C(1) << 4)
#define SCAN_ZERO (UINT64_C(1) << 5)

/*
 * As many as the kernel's own buffer holds. With more, it reports a page twice when that is full
 * (Linux 6.18; test_pagemap fails with 1024).
 */
#define PAGEMAP_REGIONS 512u

/* In the kernel's format: pages of the same categories. */
struct pagemap_region {
	uint64_t start, end, categories;
};

/*
 * The next regions of [*at, @end) with pages that are present or swapped, and which of @categories
 * apply. *at becomes the end of the scan. Returns the number of regions, or -errno; -EIO if the
 * kernel makes no progress.
 */
int pagemap_scan(int pagemap, uint64_t categories, taddr_t *at, taddr_t end,
		 struct pagemap_region region_out[PAGEMAP_REGIONS]);

#endif
