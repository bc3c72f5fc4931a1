/*
 * Touches new pages at the end of a stack of a known depth:
 *
 *	deep KIB PAGES
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "noinline.h"

static size_t pages;
static char *memory;

static NOINLINE void touch_pages(void)
{
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * 4096] = 1;
	NO_TAIL_CALL();
}

/* Else it would be touched on the way down. */
static NOINLINE void touch_stack(void)
{
	volatile char room[400000];
	for (size_t i = 0; i < sizeof(room); i += 1000)
		room[i] = 1;
}

static NOINLINE void descend(const char *top, size_t depth)
{
	volatile char room[512];
	room[0] = 0;
	if ((size_t)(top - (const char *)room) < depth)
		descend(top, depth);
	else
		touch_pages();
	room[1] = room[0];
}

int main(int argc, char **argv)
{
	char top;
	size_t depth = argc > 1 ? strtoul(argv[1], NULL, 10) << 10 : 0;
	pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, pages * 4096, MADV_NOHUGEPAGE);
	touch_stack();
	descend(&top, depth);
	return 0;
}
