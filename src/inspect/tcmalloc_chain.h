/* tcmalloc's lists of free blocks, each of which begins with a pointer to the next one, or 0. */
#ifndef PTMEM_INSPECT_TCMALLOC_CHAIN_H
#define PTMEM_INSPECT_TCMALLOC_CHAIN_H

#include "inspect/slabs.h"

struct tcmalloc_chain {
	taddr_t first;
	taddr_t span;           /* where it begins that has them all; 0 = they are in many */
	uint64_t size;          /* of each block */
	enum place_state state; /* which they have */
};

/*
 * Marks the blocks, up to one that cannot be among them; each can be once. Returns how many they
 * are. @p is sorted.
 */
uint64_t tcmalloc_chain_mark(struct inspect_memory *m, struct slabs *p, struct tcmalloc_chain c);

#endif
