/*
 * framed CALLS [late]: allocates below functions with frame pointers, jump tables and ends in calls that do
 * not return. It is built without CFI and symbols, with the space between functions filled by the
 * linker, as Chromium is: only instructions show the frames. Prints how many blocks it has made, and
 * how many of its functions were on the stack at these moments. late: after so many blocks that a
 * profiler must have read what was recorded before, 1,024 functions run for the first time, once.
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

#define FOUR(what, n) what(n##0) what(n##1) what(n##2) what(n##3)
#define SIXTEEN(what, n) FOUR(what, n##0) FOUR(what, n##1) FOUR(what, n##2) FOUR(what, n##3)
#define MANY(what, n) \
	SIXTEEN(what, n##0) SIXTEEN(what, n##1) SIXTEEN(what, n##2) SIXTEEN(what, n##3)
#define ALL(what) \
	MANY(what, 10) MANY(what, 11) MANY(what, 12) MANY(what, 13) \
	MANY(what, 20) MANY(what, 21) MANY(what, 22) MANY(what, 23) \
	MANY(what, 30) MANY(what, 31) MANY(what, 32) MANY(what, 33) \
	MANY(what, 40) MANY(what, 41) MANY(what, 42) MANY(what, 43)
#define FUNCTION(n) \
	NOINLINE unsigned late##n(unsigned depth) \
	{ \
		return allocate(depth) + n; \
	}
#define NAME(n) late##n,

ALL(FUNCTION)

static unsigned (*const late[])(unsigned) = {ALL(NAME)};

#define BETWEEN 200000 /* blocks: their records fill a ring several times */

static unsigned call_late(void)
{
	unsigned sum = 0;

	for (int i = 0; i < BETWEEN; i++)
		sum += allocate(0);
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
		sum += late[i](1);
	return sum;
}

int main(int argc, char **argv)
{
	unsigned sum = 0;

	outermost = __builtin_frame_address(0);
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		sum += choose(0);
	if (argc > 2)
		sum += call_late();
	char text[64];
	int size = snprintf(text, sizeof(text), "%u %u %u\n", blocks, frames, sum);

	return write(1, text, (size_t)size) != size; /* printf would allocate */
}
