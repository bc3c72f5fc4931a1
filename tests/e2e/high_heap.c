/*
 * Preloaded into programs that memcheck runs: reserves all free addresses below 64 GiB before the
 * first allocation, so that the heap lies above them.
 *
 * Valgrind gives out the lowest free addresses, which puts the heap at about 80,000,000. Ordinary
 * numbers then look like pointers into some block, which memcheck calls "possibly lost". One of
 * them differs from run to run: relocate_time in glibc's ld.so, which counts the cycles that
 * relocation took, 100,000,000 under Valgrind on an idle machine and 15,000,000,000 on a loaded one.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define LIMIT (UINT64_C(1) << 36)

static void *reserve(size_t size)
{
	return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Linked with -z initfirst: libstdc++ allocates in its own constructors. */
__attribute__((constructor)) static void reserve_low_addresses(void)
{
	for (size_t size = LIMIT; size >= 4096; size /= 2) {
		void *p = reserve(size);
		while (p != MAP_FAILED && (uintptr_t)p < LIMIT)
			p = reserve(size);
		if (p != MAP_FAILED)
			munmap(p, size);
	}
}
