/*
 * How often the long tests repeat something. By hand, PTMEM_ROUNDS=N multiplies all of these counts.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdlib.h>

static inline unsigned rounds(unsigned count)
{
	const char *factor = getenv("PTMEM_ROUNDS");
	return factor ? count * (unsigned)strtoul(factor, NULL, 10) : count;
}

#endif
