/*
 * All chunks of a heap, in ascending order, each with what it is.
 */
#ifndef PTMEM_INSPECT_GLIBC_WALK_H
#define PTMEM_INSPECT_GLIBC_WALK_H

#include "inspect/glibc_lists.h"

enum glibc_chunk_kind {
	CHUNK_LIVE,
	CHUNK_TCACHE, CHUNK_FASTBIN, CHUNK_UNSORTED, CHUNK_BIN, /* free */
	CHUNK_TOP,              /* free, at the end of the arena */
	CHUNK_OWN,              /* malloc's own: fenceposts, a thread's cache */
	CHUNK_UNKNOWN,          /* from here on the heap cannot be followed */
};

struct glibc_chunk {
	taddr_t addr;           /* the block is GLIBC_HEADER after it */
	uint64_t size;          /* up to the next one */
	enum glibc_chunk_kind kind;
};

struct glibc_visitor {
	/* returns false to end the walk */
	bool (*fn)(void *ctx, const struct glibc_chunk *chunk);
	void *ctx;
	/*
	 * grows by the elements of lists that are no chunks: lists that were being changed, or are
	 * corrupt
	 */
	uint64_t *unlisted;
};

/*
 * Calls @v->fn for each chunk of @h; together they cover [h->start, h->end). False: a part of @h
 * could not be followed.
 */
bool glibc_walk(struct inspect_memory *m, const struct glibc_heap *h,
		const struct glibc_lists *lists, const struct glibc_visitor *v);

#endif
