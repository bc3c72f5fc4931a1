/*
 * views: each function does one thing to memory, known to the byte, so that each quantity of each
 * source is known: at the end, at the peak, in total, and the number of times.
 * tests/e2e/test_views.py has the sums.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

#define PAGE 4096ul
#define CHECK(cond) ((cond) ? (void)0 : _exit(90))

static void *volatile kept[10];

NOINLINE static void heap_keep(void)
{
	for (int i = 0; i < 10; i++)
		kept[i] = malloc(1000);
}

NOINLINE static void heap_churn(void)
{
	for (int i = 0; i < 5; i++) {
		void *volatile p = malloc(7000);
		free(p);
	}
}

NOINLINE static void heap_peak(void)
{
	void *volatile p = malloc(50000), *volatile q = malloc(1);
	free(p);
	kept[0] = (free(kept[0]), q); /* of heap_keep 9000 are left */
}

NOINLINE static char *map_pages(unsigned long pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

NOINLINE static char *map_keep(void)
{
	char *p = map_pages(300);
	CHECK(madvise(p, 300 * PAGE, MADV_NOHUGEPAGE) == 0);
	return p;
}

NOINLINE static void map_churn(void)
{
	for (int i = 0; i < 4; i++)
		CHECK(munmap(map_pages(5000), 5000 * PAGE) == 0);
}

NOINLINE static void touch_some(volatile char *p)
{
	for (int i = 0; i < 200; i++)
		p[(unsigned long)i * PAGE] = 1;
}

NOINLINE static void touch_twice(volatile char *p)
{
	for (int i = 0; i < 200; i++)
		p[(unsigned long)(i % 100) * PAGE] = 1;
}

NOINLINE static void brk_up(void)
{
	for (int i = 0; i < 4; i++)
		CHECK(sbrk(1000000) != (void *)-1);
}

NOINLINE static void brk_down(void)
{
	CHECK(sbrk(-700000) != (void *)-1);
}

int main(void)
{
	heap_keep();
	heap_churn();
	heap_peak();
	char *p = map_keep();
	map_churn();
	touch_some(p);
	touch_twice(p + 200 * PAGE);
	brk_up();
	brk_down();
	_exit(0);
}
