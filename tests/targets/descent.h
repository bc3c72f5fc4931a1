/*
 * A random depth of stack: even() and odd() call each other down to step(), which the
 * including program defines.
 */
#ifndef DESCENT_H
#define DESCENT_H

#include "truth.h"

NOINLINE static void step(void);

NOINLINE static void odd(unsigned depth);

NOINLINE static void even(unsigned depth)
{
	char pad[64];

	memset(pad, (int)depth, sizeof(pad));
	__asm__ volatile("" : : "r"(pad) : "memory");
	if (depth)
		odd(depth - 1);
	else
		step();
	NO_TAIL_CALL();
}

NOINLINE static void odd(unsigned depth)
{
	if (depth)
		even(depth - 1);
	else
		step();
	NO_TAIL_CALL();
}

#endif
