/*
 * Allocating memory costs more than filling it: the kernel clears each page, and the host of a
 * virtual machine may have to find it first (up to 2 s for 1 GiB). So code that stops a target
 * allocates beforehand. See large.h.
 */
#include "base/large.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"

void *large_map(size_t size)
{
	size_t want = ROUND_UP(size, PAGE_SIZE_MIN);
	uint8_t *p = mmap(NULL, want + LARGE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		log_error("out of memory");
		abort();
	}
	uint8_t *start = (uint8_t *)ROUND_UP((uintptr_t)p, LARGE_PAGE);

	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + want, LARGE_PAGE - (size_t)(start - p));
	large_advise(start, want);
	return start;
}

void large_unmap(void *p, size_t size)
{
	if (p)
		munmap(p, ROUND_UP(size, PAGE_SIZE_MIN));
}

void large_advise(void *p, size_t size)
{
	uintptr_t start = ROUND_UP((uintptr_t)p, LARGE_PAGE);
	uintptr_t end = ROUND_DOWN((uintptr_t)p + size, LARGE_PAGE);

	if (start < end)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void large_touch(void *p, size_t size)
{
	volatile uint8_t *byte = p;

	for (size_t i = 0; i < size; i += PAGE_SIZE_MIN)
		byte[i] = byte[i];
}
