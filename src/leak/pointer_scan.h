/*
 * The part of a leak check for which the target must be stopped: its memory is
 * read once, and what may point to a block is kept.
 *
 *	memory -> pieces -> aligned words -> those that lie near a block -> pointer_store.h
 *
 * "Near" means: in the same 2 MiB as a block. What is kept is at most half of what is read
 * where one heap lies within 4 GiB, and all further work happens after the target goes
 * on. Since its threads stand, processors are free: several lanes, a thread each, take
 * the next piece in turn.
 *
 * Pieces of a glibc heap are also walked from chunk to chunk (heap_walk.h), while they are in
 * the cache: in their order, since one piece shows where the next one's first chunk is
 * (walk_queue.h).
 */
#ifndef PTMEM_LEAK_POINTER_SCAN_H
#define PTMEM_LEAK_POINTER_SCAN_H

#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"
#include "leak/pointer_store.h"
#include "leak/walk_queue.h"

#define POINTER_LANES 4u

/* A part of the memory, what lies between two multiples of a piece's size at most. */
struct pointer_piece {
	taddr_t start, end;
	uint32_t lane;    /* which keeps its words */
	uint32_t pages;   /* of which words were kept */
};

/* What one thread works with, and has found. */
struct pointer_lane {
	struct pointer_store store;
	uint64_t bytes, unreadable, values;
};

/*
 * Reads at most @size bytes at @addr: the number read from the start,
 * <= 0 if none. Called by several threads at once.
 */
typedef ssize_t pointer_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);

struct pointer_scan {
	VEC(struct pointer_piece) pieces; /* ascending */
	struct walk_queue queue;        /* heaps that are walked */
	pointer_read_fn *read;
	void *read_ctx;
	uint64_t *near;                 /* a bit for each 2 MiB of address space */
	taddr_t low, high;              /* of all blocks */
	uint64_t bytes, unreadable;     /* memory that was read; that could not be */
	uint64_t values;                /* words that were kept */
	struct chunk_pool pool;
	struct pointer_lane lane[POINTER_LANES];
	size_t next;                    /* piece to be read; changed atomically */
	size_t taking;                  /* piece whose words are taken */
	uint32_t taken;                 /* number of its pages taken so far */
};

void pointer_scan_init(struct pointer_scan *s);
void pointer_scan_deinit(struct pointer_scan *s);

/* Words that point to [start, end) or near it are to be kept; before any memory is read. */
void pointer_scan_add_target(struct pointer_scan *s, taddr_t start, taddr_t end);

/* Whether words that point into [start, end) could be kept. */
bool pointer_scan_has_target_near(const struct pointer_scan *s, taddr_t start, taddr_t end);

/* [start, end) is to be read: as far as whole words go. Ranges come in ascending order. */
void pointer_scan_add_range(struct pointer_scan *s, taddr_t start, taddr_t end);

/* The memory has a heap, to be walked; heaps come in ascending order and do not overlap. */
void pointer_scan_add_heap(struct pointer_scan *s, taddr_t start, taddr_t end, taddr_t top);

/*
 * Takes memory for what will be kept, so that it is there when the target is stopped: as much as
 * a sample of the ranges lets expect, which is read while they may change. Forgets the ranges.
 * Before any heap is added.
 */
void pointer_scan_prepare(struct pointer_scan *s, pointer_read_fn *read, void *ctx);

/* Reads all ranges, once. What cannot be read is left out by the page. */
void pointer_scan_run(struct pointer_scan *s, pointer_read_fn *read, void *ctx);

/*
 * The kept words page by page, in the order of addresses, until false.
 * @value: room for PAGE_WORDS.
 */
bool pointer_scan_take(struct pointer_scan *s, struct pointer_page *page_out, uint64_t *value_out);

#endif
