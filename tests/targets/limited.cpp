/*
 * limited COUNT: COUNT temporary blocks of 100 bytes, and 1,000 blocks that stay: 40 of each 100 of
 * 33 bytes from keep::small(int), the others of 7 bytes from tail(). One is lost.
 */
#include <cstdlib>

#include "noinline.h"

void *kept[1000];

struct keep {
	NOINLINE static void *small(int size)
	{
		void *p = malloc(static_cast<std::size_t>(size));

		__asm__ volatile("" : : "r"(p) : "memory");
		return p;
	}
};

NOINLINE static void *tail()
{
	void *p = malloc(7);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

NOINLINE static void pass(void)
{
	void *p = malloc(100);

	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

int main(int argc, char **argv)
{
	for (int i = argc > 1 ? std::atoi(argv[1]) : 0; i > 0; i--)
		pass();
	for (int i = 0; i < 1000; i++)
		kept[i] = i % 100 < 40 ? keep::small(33) : tail();
	kept[550] = nullptr;
	return argc > 2 ? std::atoi(argv[2]) : 0;
}
