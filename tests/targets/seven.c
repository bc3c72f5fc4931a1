/*
 * seven: allocators with arguments on the stack, the seventh and those of `...`, which would be at another place if
 * their calls went through a stub. Leaves with status 90 if one of them is not what was passed.
 */
#include <stdarg.h>

#include "truth.h"

NOINLINE void *seven_alloc(size_t size, int b, int c, int d, int e, int f, long g)
{
	__asm__ volatile("" : : "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
	return g == 77 ? malloc(size) : NULL;
}

NOINLINE void *list_alloc(int count, ...)
{
	size_t size = 0;
	va_list list;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		size += va_arg(list, size_t);
	va_end(list);
	return size == 45 ? malloc(size) : NULL;
}

NOINLINE void *pass_alloc(size_t size, int b, int c, int d, int e, int f, long g)
{
	return seven_alloc(size, b, c, d, e, f, g);
}

int main(void)
{
	void *p = seven_alloc(10, 2, 3, 4, 5, 6, 77), *q = pass_alloc(20, 2, 3, 4, 5, 6, 77);
	void *r = list_alloc(9, 1ul, 2ul, 3ul, 4ul, 5ul, 6ul, 7ul, 8ul, 9ul);

	if (!p || !q || !r)
		return 90;
	truth_made(p, 10);
	truth_made(q, 20);
	truth_made(r, 45);
	truth_report();
	return 0;
}
