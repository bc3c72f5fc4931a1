/*
 * A queue of possible pointers found in memory, page by page. Each page is added once and
 * read once, in the same order. Values that differ only in their lower halves take four bytes each:
 *
 *	page: {address, mask of its words, upper half} low low low ...
 *	      {address, mask of its words, WIDE_VALUES} value value ...
 *
 * Pages are stored in chunks of several megabytes. A chunk is unmapped as soon as it has been
 * read, to make room for the results.
 */
#ifndef PTMEM_LEAK_POINTER_STORE_H
#define PTMEM_LEAK_POINTER_STORE_H

#include "base/types.h"
#include "base/vec.h"

#define PAGE_WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))

struct pointer_page {
	taddr_t addr;
	uint64_t mask[PAGE_WORDS / 64]; /* one bit for each word that was stored */
	uint32_t upper;                 /* upper half of all values, or WIDE_VALUES */
	uint32_t count;                 /* values */
};

/* Chunks shared by several writers. */
struct chunk_pool {
	VEC(uint64_t *) chunks;
	size_t taken; /* number of chunks in use, from the first; changed atomically */
};

struct pointer_store {
	VEC(uint64_t *) chunks;
	struct chunk_pool *pool;
	size_t writing;  /* offset in the last chunk, in words */
	size_t reading;  /* index of the chunk being read */
	size_t at;       /* offset in that chunk, in words */
};

/* @pool outlives the writers. */
void pointer_store_init(struct pointer_store *w, struct chunk_pool *pool);
void pointer_store_deinit(struct pointer_store *w);

/* Adds a page of @count > 0 values; @mask has the bits of their words, in order. */
void pointer_store_add(struct pointer_store *w, taddr_t addr, const uint64_t *mask,
		       const uint64_t *value,
		    uint32_t count);

/* Bytes of memory in use. */
uint64_t pointer_store_bytes(const struct pointer_store *w);

/* Reads the next page; call once for each page added. @value_out: PAGE_WORDS elements. */
void pointer_store_next(struct pointer_store *w, struct pointer_page *page_out,
			uint64_t *value_out);

/* Allocates chunks for @bytes of stored values in advance. */
void chunk_pool_fill(struct chunk_pool *s, uint64_t bytes);
/* Unmaps the chunks that no writer took. */
void chunk_pool_release(struct chunk_pool *s);

#endif
