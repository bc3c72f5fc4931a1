/*
 * sampled_inner COUNT [delete]: as sampled_cxx, with an operator new of its own that puts a header before each object.
 * What releases an object is inlined, so free is called for the header's address and operator delete never; with
 * "delete" operator delete is called.
 */
#include <cstdlib>
#include <cstring>
#include <new>

#include "noinline.h"

#define HEADER 16

struct object {
	char bytes[100];
};

static object *volatile kept[64];

NOINLINE void *operator new(std::size_t size)
{
	return static_cast<char *>(malloc(size + HEADER)) + HEADER;
}

static inline void release(void *p)
{
	if (p)
		free(static_cast<char *>(p) - HEADER);
}

NOINLINE void operator delete(void *p) noexcept
{
	release(p);
}

NOINLINE void operator delete(void *p, std::size_t) noexcept
{
	release(p);
}

static NOINLINE void make(long count, bool is_inlined)
{
	for (long i = 0; i < count; i++) {
		if (is_inlined)
			release(kept[i % 64]);
		else
			delete kept[i % 64];
		kept[i % 64] = new object;
	}
}

int main(int argc, char **argv)
{
	make(argc > 1 ? atol(argv[1]) : 0, argc < 3 || strcmp(argv[2], "delete") != 0);
	return 0;
}
