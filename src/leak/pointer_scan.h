/*
 * The part of a leak check for which the target must be stopped: reads its memory once, and keeps
 * words that may point to a block. memory -> pieces -> aligned words -> those near a block ->
 * pointer_store.h
 *
 * "Near" means: in the same 2 MiB as a block. With one heap within 4 GiB at most half of the memory
 * is kept. All further work is done after the target was resumed. While its threads are stopped,
 * CPUs are free: several lanes, one thread each, take the pieces in turn.
 *
 * Pieces of a glibc heap are also walked from chunk to chunk (heap_walk.h), while they are in
 * the cache: in order, since the first chunk of a piece is known from the previous one
 * (walk_queue.h).
 */
#ifndef PTMEM_LEAK_POINTER_SCAN_H
#define PTMEM_LEAK_POINTER_SCAN_H

#include <sys/types.h>

#include "base/lanes.h"
#include "base/types.h"
#include "base/vec.h"
#include "leak/pointer_store.h"
#include "leak/walk_queue.h"

#define POINTER_LANES LANES_MAX

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

/*
 * Reads at most @size bytes at @addr. Returns the number of bytes read, <= 0 if none. Called by
 * several threads concurrently.
 */
typedef ssize_t pointer_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);

struct pointer_scan {
	VEC(struct pointer_piece) pieces; /* ascending */
	struct walk_queue queue;        /* heaps to be walked */
	pointer_read_fn *read;
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
void pointer_scan_prepare(struct pointer_scan *s, pointer_read_fn *read, void *ctx);

/* Reads all ranges once. Skips pages that cannot be read. */
void pointer_scan_run(struct pointer_scan *s, pointer_read_fn *read, void *ctx);

/*
 * Returns the kept words page by page, in ascending order; false at the end. @value: PAGE_WORDS
 * elements.
 */
bool pointer_scan_take(struct pointer_scan *s, struct pointer_page *page_out, uint64_t *value_out);

#endif
