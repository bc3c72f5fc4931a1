/*
 * Reads the memory of a stopped target once, and keeps words that may point to a block: memory ->
 * pieces -> aligned words -> those near a block -> a compact queue, page by page.
 */
#ifndef PTMEM_LEAK_POINTER_SCAN_H
#define PTMEM_LEAK_POINTER_SCAN_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/types.h"
#include "malloc/heap_walk.h"
#include "malloc/memory.h"

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

/* Reads the next page; call once for each page added. @value_out: PAGE_WORDS elements. */
void pointer_store_next(struct pointer_store *w, struct pointer_page *page_out,
			uint64_t *value_out);

/* Allocates chunks for @bytes of stored values in advance. */
void chunk_pool_fill(struct chunk_pool *s, uint64_t bytes);
/* Unmaps the chunks that no writer took. */
void chunk_pool_release(struct chunk_pool *s);

/*
 * The part of a leak check for which the target must be stopped: reads its memory once, and keeps
 * words that may point to a block:
 *
 *	memory -> pieces -> aligned words -> those near a block -> chunks
 *
 * "Near" means: in the same 2 MiB as a block. With one heap within 4 GiB at most half of the memory
 * is kept. All further work is done after the target was resumed. While its threads are stopped,
 * CPUs are free: several lanes, one thread each, take the pieces in turn.
 *
 * Pieces of a glibc heap are also walked from chunk to chunk (heap_walk.h), while they are in
 * the cache: in order, since the first chunk of a piece is known from the previous one
 * (heap_walk.h).
 */

#define POINTER_LANES PARALLEL_MAX

/* A part of the memory, which does not cross a multiple of the piece size. */
struct pointer_piece {
	taddr_t start, end;
	uint32_t lane;    /* lane that keeps its words */
	uint32_t pages;   /* pages of which words were kept */
};

/* The data of one thread. */
struct pointer_lane {
	struct pointer_store store;
	uint64_t bytes, unreadable, values;
};

struct pointer_scan {
	VEC(struct pointer_piece) pieces; /* ascending */
	struct walk_queue queue;        /* heaps to be walked */
	memory_read_fn *read;
	void *read_ctx;
	uint64_t *near;                 /* a bit for each 2 MiB of address space */
	taddr_t low, high;              /* bounds of all blocks */
	uint64_t bytes, unreadable;     /* bytes read; bytes that could not be read */
	uint64_t values;                /* number of words kept */
	struct chunk_pool pool;
	struct pointer_lane lane[POINTER_LANES];
	size_t next;                    /* next piece to read; changed atomically */
	size_t taking;                  /* piece whose words are being read back */
	uint32_t taken;                 /* number of its pages done so far */
};

void pointer_scan_init(struct pointer_scan *s);
void pointer_scan_deinit(struct pointer_scan *s);

/* Words that point to [start, end) or near it are to be kept. Call before any memory is read. */
void pointer_scan_add_target(struct pointer_scan *s, taddr_t start, taddr_t end);

/* Whether words that point into [start, end) may have been kept. */
bool pointer_scan_has_target_near(const struct pointer_scan *s, taddr_t start, taddr_t end);

/* Adds [start, end) to the memory to read, rounded to whole words. Ranges must be ascending. */
void pointer_scan_add_range(struct pointer_scan *s, taddr_t start, taddr_t end);

/* Adds a heap to be walked. Heaps must be ascending and disjoint. */
void pointer_scan_add_heap(struct pointer_scan *s, taddr_t start, taddr_t end, taddr_t top);

/*
 * Allocates memory for the words before the target is stopped. The amount is estimated from a
 * sample of the ranges, which may change meanwhile. Drops the ranges. Call before adding any heap.
 */
void pointer_scan_prepare(struct pointer_scan *s, memory_read_fn *read, void *ctx);

/* Reads all ranges once. Skips pages that cannot be read. */
void pointer_scan_run(struct pointer_scan *s, memory_read_fn *read, void *ctx);

/*
 * Returns the kept words page by page, in ascending order; false at the end. @value: PAGE_WORDS
 * elements.
 */
bool pointer_scan_take(struct pointer_scan *s, struct pointer_page *page_out, uint64_t *value_out);

#endif
