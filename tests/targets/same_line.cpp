/*
 * same_line: two clones of a function, as a compiler makes them for constant arguments, allocate at
 * the same line. It prints the line and the bytes of both.
 */
#include <cstdio>
#include <cstdlib>

#include "noinline.h"

#define CLONE(n) \
	NOINLINE static void work##n(int count) __asm__("_Z4worki.constprop." #n); \
	NOINLINE static void work##n(int count) \
	{ \
		for (int i = 0; i < count; i++) \
			kept[n][i] = malloc(1000); \
	}

enum { COUNT = 20 };

static void *volatile kept[2][2 * COUNT];

CLONE(0) CLONE(1) static const int line = __LINE__;

int main(void)
{
	work0(COUNT);
	work1(2 * COUNT);
	printf("same_line.cpp:%d %d\n", line, 3 * COUNT * 1000);
	return 0;
}
