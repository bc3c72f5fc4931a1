/*
 * monitored: holds 7 blocks of 1,000 bytes, says so, and then at each letter of its input allocates one more
 * and says so; at an m, many small ones before, each by another path; at an i, it is allocated by a function that
 * is inlined. Ends with its input.
 */
#include <string.h>
#include <unistd.h>

#include "truth.h"

NOINLINE static void *hold(size_t n)
{
	void *p = malloc(n);

	NO_TAIL_CALL();
	return p;
}

__attribute__((always_inline)) static inline void *hold_inlined(size_t n)
{
	return malloc(n);
}

static void *chain; /* of the many */

NOINLINE static void hold_link(unsigned path)
{
	void **link = hold(sizeof(*link));

	(void)path;
	*link = chain;
	chain = link;
}

/* Two functions for each bit of the path. Their code differs, or they would become one. */
#define TURNS(n, left, right) \
	NOINLINE static void left_##n(unsigned path) \
	{ (path & 1 ? right : left)(path >> 1); __asm__ volatile("# left" : : : "memory"); } \
	NOINLINE static void right_##n(unsigned path) \
	{ (path & 1 ? right : left)(path >> 1); __asm__ volatile("# right" : : : "memory"); }

TURNS(1, hold_link, hold_link)
TURNS(2, left_1, right_1)
TURNS(3, left_2, right_2)
TURNS(4, left_3, right_3)
TURNS(5, left_4, right_4)
TURNS(6, left_5, right_5)
TURNS(7, left_6, right_6)
TURNS(8, left_7, right_7)
TURNS(9, left_8, right_8)
TURNS(10, left_9, right_9)

static void free_chain(void)
{
	while (chain) {
		void *next = *(void **)chain;

		free(chain);
		chain = next;
	}
}

int main(void)
{
	static void *held[64];
	size_t count = 0;
	char c;

	while (count < 7)
		held[count++] = hold(1000);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1) {
		for (unsigned path = 0; c == 'm' && path < 1024; path++)
			(path & 1 ? right_10 : left_10)(path >> 1);
		held[count++] = c == 'i' ? hold_inlined(1000) : hold(1000);
		if (count == 64 || write(1, "more\n", 5) != 5)
			return 1;
	}
	for (size_t i = 0; i < count; i++)
		free(held[i]);
	free_chain();
	return 5;
}
