/* All chunks of a heap in ascending order, each with its state. */
#ifndef PTMEM_INSPECT_GLIBC_WALK_H
#define PTMEM_INSPECT_GLIBC_WALK_H

#include "inspect/glibc_lists.h"

enum glibc_chunk_kind {
	CHUNK_LIVE,
	CHUNK_TCACHE, CHUNK_FASTBIN, CHUNK_UNSORTED, CHUNK_BIN, /* free */
	CHUNK_TOP,              /* free, at the end of the arena */
	CHUNK_OWN,              /* used by malloc itself: fenceposts, a thread's cache */
	CHUNK_FOREIGN,          /* the program's own, from sbrk, between parts of the heap */
	CHUNK_UNKNOWN,          /* the heap cannot be walked from here on */
};

struct glibc_chunk {
	taddr_t addr;           /* its block is at + GLIBC_HEADER */
	uint64_t size;          /* distance to the next chunk */
	enum glibc_chunk_kind kind;
	uint32_t type;          /* of its block, for a visitor that knows it; 0 in a walk */
};

struct glibc_visitor {
	/* returns false to end the walk */
	bool (*fn)(void *ctx, const struct glibc_chunk *chunk);
	void *ctx;
	/*
	 * counts elements of lists that are not chunks: lists that were being changed, or are
	 * corrupt
	 */
	uint64_t *unlisted;
};

/*
 * Calls @v->fn for each chunk of @h; together they cover [h->start, h->end). Returns false if a
 * part of @h could not be walked.
 */
bool glibc_walk(struct inspect_memory *m, const struct glibc_heap *h,
		const struct glibc_lists *lists, const struct glibc_visitor *v);

#endif
