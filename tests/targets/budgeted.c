/*
 * budgeted: allocates and releases blocks of many sizes as fast as it can, until its input ends, and then
 * MORE more. Says when it has begun; at the end says how many bytes it has requested, and how many it still holds.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "truth.h"

#define HELD 4096
#define MORE (1 << 20)
#define ASKED_EVERY 65536

NOINLINE static void *hold(size_t n)
{
	void *p = malloc(n);

	NO_TAIL_CALL();
	return p;
}

static int has_ended(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	return poll(&input, 1, 0) != 0;
}

int main(void)
{
	static void *held[HELD];
	static size_t size[HELD];
	uint64_t bytes = 0, live = 0;
	uint32_t random = 1;

	if (write(1, "begun\n", 6) != 6)
		return 1;
	for (uint64_t i = 0, end = UINT64_MAX; i < end; i++) {
		if (i % ASKED_EVERY == 0 && end == UINT64_MAX && has_ended())
			end = i + MORE;
		random = random * 1664525u + 1013904223u;
		uint32_t k = random >> 20;

		free(held[k]);
		live -= size[k];
		size[k] = 16 + (random >> 8) % 4000;
		held[k] = hold(size[k]);
		live += size[k];
		bytes += size[k];
	}
	dprintf(1, "%llu %llu\n", (unsigned long long)bytes, (unsigned long long)live);
	return 0;
}
