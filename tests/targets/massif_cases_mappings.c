/*
 * CASE=NAME massif_cases_mappings: mremap where neither the kernel nor Valgrind can choose the address: growing a
 * mapping that was cut, moving to a given address, shrinking.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "noinline.h"

#define PAGE 4096ul

NOINLINE static char *map(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void unmap(char *p, size_t pages)
{
	munmap(p, pages * PAGE);
	NO_TAIL_CALL();
}

NOINLINE static char *remap(char *p, size_t from, size_t pages, char *to)
{
	int how = MREMAP_MAYMOVE | (to ? MREMAP_FIXED : 0);

	p = mremap(p, from * PAGE, pages * PAGE, how, to);
	NO_TAIL_CALL();
	return p;
}

int main(void)
{
	const char *wanted = getenv("CASE");
	char *gap = map(256), *p = map(16);

	unmap(gap, 256);
	if (!strcmp(wanted, "grow"))
		p = remap(remap(p, 16, 5, NULL), 5, 12, NULL);
	else if (!strcmp(wanted, "move"))
		p = remap(p, 16, 64, gap + 8 * PAGE);
	else if (!strcmp(wanted, "shrink"))
		p = remap(p, 16, 5, NULL);
	else if (!strcmp(wanted, "move-shrink"))
		p = remap(p, 16, 5, gap + 8 * PAGE);
	else
		return 1;
	return p == MAP_FAILED;
}
