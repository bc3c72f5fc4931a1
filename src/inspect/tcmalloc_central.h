/*
 * tcmalloc's central lists, one for each size class, with its transfer cache:
 *
 *	-8   the size class
 *	0    head of its spans without free blocks, as a description of a span
 *	48   head of its other spans
 *	96   number of its spans; 104 of the free blocks in them
 *	112  64 times: a chain of blocks on their way between threads, the last of them
 *	1136 int how many of these are used
 *
 * Lists of spans are circular.
 */
#ifndef PTMEM_INSPECT_TCMALLOC_CENTRAL_H
#define PTMEM_INSPECT_TCMALLOC_CENTRAL_H

#include "inspect/slabs.h"

/* A size class, as its spans have it. */
struct tcmalloc_central {
	taddr_t head;           /* of one of the lists; 0 = none */
	uint64_t spans, free;   /* in all, and free blocks in them */
	uint64_t size;          /* of its blocks */
};

/*
 * Marks what is in the transfer cache of @class. False: the central list is not as its spans are.
 * @p is sorted.
 */
bool tcmalloc_central_read(struct inspect_memory *m, const struct tcmalloc_central *c,
			   uint32_t class, struct slabs *p);

#endif
