/*
 * The heap of the main arena. It grows by brk; where it cannot, malloc uses mmap and leaves it
 * discontiguous from then on:
 *
 *	part     chunks, each after the one before, then two headers of 16 bytes
 *	...
 *	part     chunks up to the end of the top chunk, which may be in any of them
 *
 * A part from brk begins and ends anywhere, one from mmap at pages. No pointer leads to a part.
 */
#ifndef PTMEM_INSPECT_GLIBC_MAIN_H
#define PTMEM_INSPECT_GLIBC_MAIN_H

#include "inspect/glibc.h"

/*
 * Replaces what is known of the main heap in @found by what is there, if that differs. A heap that
 * is not found is lost.
 */
void glibc_main_check(struct inspect_memory *m, struct arenas *found, struct glibc *g);

#endif
