/*
 * Finds the free parts of a glibc heap. Chunks are consecutive, and each holds its size and whether
 * the previous one is in use (the GNU C Library's malloc/malloc.c, "chunk"):
 *
 *	at      size of the previous chunk if that is free, else the last word of its block
 *	at + 8  size | 1 if the previous chunk is in use
 *	at + 16 the block
 *
 * Chunks in a thread's cache or in a fastbin are marked as in use.
 *
 * Memory is fed in ascending pieces. If the chunks do not lead from the first to the last one, this
 * is not such a heap, or it is being changed: then nothing is known about it.
 */
#ifndef PTMEM_MALLOC_HEAP_WALK_H
#define PTMEM_MALLOC_HEAP_WALK_H

#include <pthread.h>

#include "base/alloc.h"
#include "base/types.h"

enum heap_walk_state { HEAP_WALK_RUNS, HEAP_WALK_DONE, HEAP_WALK_FAILED };

struct heap_walk {
	taddr_t start, end;   /* first chunk; end of the last, final after the walk */
	taddr_t top;          /* the last chunk, which is free; 0 = a fencepost ends the heap */
	taddr_t bound;        /* the initial value of end */
	taddr_t at, before;   /* the next chunk; the previous one, 0 = none */
	enum heap_walk_state state;
	VEC(struct addr_range) free; /* ascending */
};

/*
 * A walk through one piece of memory from a guessed chunk. The thread that has the piece in its
 * cache does this when it is not known yet where the first chunk in the piece is.
 */
struct heap_guess {
	struct heap_walk walk;
	taddr_t before;       /* the chunk before walk.start */
	bool is_made;
};

/* Starts a heap whose chunks begin at @start. @end: upper bound of its memory. */
void heap_walk_init(struct heap_walk *w, taddr_t start, taddr_t end, taddr_t top);
void heap_walk_deinit(struct heap_walk *w);

/* @word: the memory at @addr, @size bytes (whole words). */
void heap_walk_feed(struct heap_walk *w, taddr_t addr, const uint64_t *word, size_t size);

/*
 * Guesses in memory that will be fed to @w, which another thread may walk meanwhile. @g: zero, or a
 * guess for other memory.
 */
void heap_walk_guess(struct heap_guess *g, const struct heap_walk *w, taddr_t addr,
		     const uint64_t *word, size_t size);
void heap_guess_deinit(struct heap_guess *g);

/* The usable size of a block of @size bytes: up to the next chunk's size word. */
static inline uint64_t heap_usable_size(uint64_t size)
{
	return size <= 24 ? 24 : ROUND_UP(size + 8, UINT64_C(16)) - 8;
}

/*
 * Heaps are walked from chunk to chunk, so their memory is needed in the order of
 * addresses, but several threads read it, each a piece at a time:
 *
 *	read (any thread, any order) -> queue -> walk (one thread at a time, in order)
 *
 * A thread that has read a piece before its turn queues it and continues with another buffer. The
 * walking thread also walks the queued pieces that follow. So a thread waits only if it is far
 * ahead.
 *
 * Following chunks through another CPU's cache is slow. So the thread that reads a piece also walks
 * it, from a guessed chunk (heap_walk_guess). If the walk in order reaches that chunk, the guess
 * was right and its result is used; else the piece is walked again.
 */

#define WALK_PIECE_SIZE (1u << 18)

/* A piece of memory, as far as it was readable. */
struct walk_buffer {
	taddr_t start;               /* address of its data */
	VEC(struct addr_range) parts; /* parts that were read; ascending */
	struct heap_guess guess;     /* storage for a single part */
	uint64_t data[WALK_PIECE_SIZE / sizeof(uint64_t)];
};

struct walk_queue {
	VEC(struct heap_walk) walks;     /* ascending */
	/* all below: protected by the lock */
	pthread_mutex_t lock;
	pthread_cond_t has_advanced;
	struct queued_piece *piece;      /* by number */
	size_t count, next;              /* number of pieces; the first that was not walked */
	bool is_walking;                 /* a thread is walking piece @next */
	VEC(struct walk_buffer *) spare; /* a stack: the last one used is reused first */
};

void walk_queue_init(struct walk_queue *q);
void walk_queue_deinit(struct walk_queue *q);

/* Heaps must be ascending and disjoint. */
void walk_queue_add_heap(struct walk_queue *q, taddr_t start, taddr_t end, taddr_t top);

/* @pieces ascending pieces, numbered from 0, will be put, each once, in any order. */
void walk_queue_start(struct walk_queue *q, size_t pieces);

/* Takes an empty buffer for a piece that begins at @start. Thread-safe, as is put. */
struct walk_buffer *walk_queue_take(struct walk_queue *q, taddr_t start);

/* Returns a buffer that was taken and not put. */
void walk_queue_give(struct walk_queue *q, struct walk_buffer *buffer);

/*
 * Queues piece @number in @buffer, and takes over the buffer. A thread puts a piece before it takes
 * another one, and takes them in ascending order.
 */
void walk_queue_put(struct walk_queue *q, size_t number, struct walk_buffer *buffer);

#endif
