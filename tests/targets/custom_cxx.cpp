/*
 * custom_cxx N: an arena in C++ that throws when it is full, for --probe by demangled and mangled
 * names. Every tenth request is too large.
 */
#include "truth.h"

#include <new>

namespace app
{
struct Arena {
	NOINLINE void *take(size_t size);
	NOINLINE void give(void *block);
	template <typename T> NOINLINE T *make(int count);
};

void *Arena::take(size_t size)
{
	if (size > 4096)
		throw std::bad_alloc();
	return malloc(size + 32);
}

void Arena::give(void *block)
{
	free(block);
}

template <typename T> T *Arena::make(int count)
{
	return static_cast<T *>(take(sizeof(T) * static_cast<size_t>(count)));
}
}

int main(int argc, char **argv)
{
	app::Arena arena;
	CHECK(argc > 1);

	for (int i = 0; i < atoi(argv[1]); i++) {
		size_t size = i % 10 == 9 ? 5000 : 16 + (size_t)i % 50;
		try {
			void *p = truth_made(arena.take(size), size);
			if (i % 3) {
				truth_gone(size);
				arena.give(p);
			}
		} catch (const std::bad_alloc &) {
			truth_made(NULL, size);
		}
		truth_made(arena.make<double>(3), 24);
	}
	truth_report();
	print_ok();
	return 0;
}
