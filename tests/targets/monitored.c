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

NOINLINE static void turn_right(unsigned path, int steps);

NOINLINE static void turn_left(unsigned path, int steps)
{
	void **link;

	if (steps > 0) {
		(path & 1 ? turn_right : turn_left)(path >> 1, steps - 1);
		NO_TAIL_CALL();
		return;
	}
	link = hold(sizeof(*link));
	*link = chain;
	chain = link;
}

NOINLINE static void turn_right(unsigned path, int steps)
{
	turn_left(path, steps);
	NO_TAIL_CALL();
}

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
			turn_left(path, 10);
		held[count++] = c == 'i' ? hold_inlined(1000) : hold(1000);
		if (count == 64 || write(1, "more\n", 5) != 5)
			return 1;
	}
	for (size_t i = 0; i < count; i++)
		free(held[i]);
	free_chain();
	return 5;
}
