/*
 * failures: failed calls, realloc in all its forms, free(NULL). A
 * realloc to 0 is counted by what it returned, since allocators differ.
 */
#include "truth.h"

static volatile size_t huge = SIZE_MAX - 4096, half = SIZE_MAX / 2 + 1;

NOINLINE static void fail_allocations(void)
{
	CHECK(!t_malloc(huge));
	CHECK(!t_malloc(half));
	CHECK(!t_calloc(half, 2));
	CHECK(!t_calloc(half, half));
	CHECK(!t_calloc(1, huge));
	CHECK(!t_posix_memalign(3, 100));
	CHECK(!t_posix_memalign(4, 100));
	CHECK(!t_posix_memalign(24, 100));
	CHECK(!t_posix_memalign(64, huge));
	CHECK(!t_aligned_alloc(64, huge - huge % 64));
	CHECK(!t_memalign(64, huge));
	CHECK(!t_realloc(NULL, 0, huge));
	CHECK(!t_reallocarray(NULL, 0, half, 2));
}

/* A failed realloc leaves the block as it was. */
NOINLINE static void fail_reallocs(void)
{
	char *p = t_malloc(100);

	CHECK(p);
	memset(p, 7, 100);
	CHECK(!t_realloc(p, 100, huge));
	CHECK(!t_realloc(p, 100, half));
	CHECK(!t_reallocarray(p, 100, half, 2));
	CHECK(!t_reallocarray(p, 100, half, half));
	for (int i = 0; i < 100; i++)
		CHECK(p[i] == 7);
	p = t_realloc(p, 100, 120);
	CHECK(p && p[99] == 7);
	t_free(p, 120);
}

NOINLINE static void resize(void)
{
	static const size_t sizes[] = { 1, 24, 25, 1000, 100, 100, 200000, 3000000, 150000, 10 };
	void *p = t_realloc(NULL, 0, 17), *guard;
	size_t size = 17;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		p = t_realloc(p, size, sizes[i]);
		CHECK(p);
		size = sizes[i];
	}
	guard = t_malloc(64); /* the next one cannot grow in place */
	p = t_reallocarray(p, size, 300, 30);
	p = t_realloc(p, 9000, 0);
	t_free(p, 0);
	p = t_realloc(NULL, 0, 0);
	p = t_realloc(p, 0, 40);
	t_free(p, 40);
	t_free(guard, 64);
}

NOINLINE static void zero_sizes(void)
{
	t_free(t_malloc(0), 0);
	t_free(t_calloc(0, 0), 0);
	t_free(t_calloc(0, 8), 0);
	t_free(t_calloc(half, 0), 0);
	t_free(t_posix_memalign(64, 0), 0);
	for (int i = 0; i < 10; i++)
		t_free(NULL, 0);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		fail_allocations();
		fail_reallocs();
		resize();
		zero_sizes();
	}
	/* Not freed, so that the bytes in use at exit are not 0. */
	t_realloc(t_malloc(10), 10, 12345);
	truth_report();
	return 0;
}
