/*
 * cxx_user: the program's own operators new and delete, on a pool without an allocator: the
 * outermost call counts, with its own size; what they take from malloc is inside and does not. Not
 * inlined: an inlined call cannot be intercepted.
 */
#include <new>

#include "truth.h"

static unsigned char pool[1 << 20];
static size_t used;

NOINLINE void *operator new(size_t size)
{
	void *p = pool + used;

	used += (size + 31) & ~(size_t)15;
	CHECK(used <= sizeof(pool));
	return p;
}

/* Returns malloc's memory, 16 bytes in: the address is not that of a block. */
NOINLINE void *operator new[](size_t size)
{
	unsigned char *p = (unsigned char *)malloc(size + 16);

	CHECK(p);
	return p + 16;
}

NOINLINE void operator delete(void *p) noexcept
{
	(void)p;
}

NOINLINE void operator delete(void *p, size_t size) noexcept
{
	(void)p;
	(void)size;
}

NOINLINE void operator delete[](void *p) noexcept
{
	if (p)
		free((unsigned char *)p - 16);
}

NOINLINE void operator delete[](void *p, size_t size) noexcept
{
	(void)size;
	if (p)
		free((unsigned char *)p - 16);
}

struct thing {
	uint64_t data[9];
};

int main()
{
	std::set_new_handler(nullptr); /* links the C++ library whatever the linker's defaults */
	for (int i = 0; i < 50; i++) {
		thing *t = new thing;
		truth_made(t, sizeof(*t));
		char *a = new char[100 + i];
		truth_made(a, (uint64_t)(100 + i));
		void *m = t_malloc(64);
		truth_gone((uint64_t)(100 + i));
		delete[] a;
		if (i % 2) {
			truth_gone(sizeof(*t));
			delete t;
		}
		t_free(m, 64);
	}
	truth_report();
	print_ok();
}
