/*
 * framed CALLS: allocates below functions with frame pointers, jump tables and ends in calls that do
 * not return. It is built without CFI and symbols, with the space between functions filled by the
 * linker, as Chromium is: only instructions show the frames. Prints how many blocks it has made, and
 * how many of its functions were on the stack at these moments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "noinline.h"

#define DEPTH 12

static unsigned long seed = 1;
static unsigned blocks, frames;
static void *outermost;

static unsigned next(unsigned range)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 40) % range;
}

NOINLINE __attribute__((noreturn)) void stop(unsigned depth)
{
	dprintf(2, "depth %u\n", depth);
	exit(2);
}

NOINLINE unsigned allocate(unsigned depth)
{
	void *p = malloc(16 + depth);

	blocks++;
	frames++;
	for (void **fp = __builtin_frame_address(0); fp != outermost; fp = *fp)
		frames++;
	__asm__ volatile("" ::"r"(p) : "memory");
	free(p);
	return depth;
}

unsigned choose(unsigned depth);

/* An early return before there is a frame. */
NOINLINE unsigned early(unsigned depth, const char *text)
{
	if (!text)
		return depth;
	unsigned sum = 0;
	for (; *text; text++)
		sum += choose(depth + (unsigned)(*text - 'a'));
	return sum + allocate(depth);
}

NOINLINE unsigned large(unsigned depth)
{
	volatile char room[5000];

	room[depth] = (char)depth;
	unsigned sum = choose(depth + 1) + (unsigned)room[depth];
	if (sum == 0x7fffffff)
		stop(depth);
	return sum;
}

/* The last instruction is a call. */
NOINLINE unsigned ends_in_call(unsigned depth)
{
	if (depth <= 2 * DEPTH)
		return choose(depth + 1) + 1;
	stop(depth);
}

NOINLINE unsigned choose(unsigned depth)
{
	if (depth >= DEPTH)
		return allocate(depth);
	switch (next(8)) {
	case 0:
		return early(depth, "b") + 1;
	case 1:
		return large(depth) + allocate(depth);
	case 2:
		return ends_in_call(depth) ^ depth;
	case 3:
		return early(depth, NULL) + allocate(depth + 3);
	case 4: {
		unsigned char *array = __builtin_alloca(next(100) + 1);

		array[0] = (unsigned char)choose(depth + 2);
		return array[0] + allocate(depth);
	}
	case 5:
		return ends_in_call(depth + 1) + large(depth + 1);
	case 6:
		return allocate(depth) * 3;
	default:
		return choose(depth + 1) + choose(depth + 4);
	}
}

int main(int argc, char **argv)
{
	unsigned sum = 0;

	outermost = __builtin_frame_address(0);
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		sum += choose(0);
	char text[64];
	int size = snprintf(text, sizeof(text), "%u %u %u\n", blocks, frames, sum);

	return write(1, text, (size_t)size) != size; /* printf would allocate */
}
