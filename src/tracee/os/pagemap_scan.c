/* See pagemap_scan.h. */
#include "tracee/os/pagemap_scan.h"

#include <errno.h>
#include <sys/ioctl.h>

/* linux/fs.h */
struct scan {
	uint64_t size;  /* of this */
	uint64_t flags, start, end;
	uint64_t walk_end; /* where the scan stopped */
	uint64_t regions, region_count, max_pages;
	uint64_t inverted, all_of, any_of, returned; /* categories */
};
#define SCAN _IOWR('f', 16, struct scan)

int pagemap_scan(int pagemap, uint64_t categories, taddr_t *at, taddr_t end,
		 struct pagemap_region region_out[PAGEMAP_REGIONS])
{
	struct scan s = {.size = sizeof(s), .start = *at, .end = end,
			 .regions = (uint64_t)(uintptr_t)region_out,
			 .region_count = PAGEMAP_REGIONS,
			 .any_of = SCAN_PRESENT | SCAN_SWAPPED, .returned = categories};
	int n;

	do
		n = ioctl(pagemap, SCAN, &s);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (s.walk_end <= *at)
		return -EIO;
	*at = s.walk_end;
	return n;
}
