/*
 * While a program stands still for us, each thread that is let go wants the CPU: one of
 * them gets ours, and the others wait for milliseconds more than the work takes.
 */
#ifndef PTMEM_TARGET_HURRY_H
#define PTMEM_TARGET_HURRY_H

#include <stdbool.h>

struct hurry {
	bool is_on;
	int policy, priority; /* of before */
};

/* From now on nobody takes the CPU from this thread, where that is allowed (root); for milliseconds
 * at most, which the work in between must be good for. */
void hurry_begin(struct hurry *h);
void hurry_end(struct hurry *h);

#endif
