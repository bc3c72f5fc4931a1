/*
 * Heaps are walked from chunk to chunk (heap_walk.h), so their memory is needed in the order of
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
#ifndef PTMEM_LEAK_WALK_QUEUE_H
#define PTMEM_LEAK_WALK_QUEUE_H

#include <pthread.h>

#include "base/types.h"
#include "base/vec.h"
#include "leak/heap_walk.h"

#define WALK_PIECE_SIZE (1u << 18)

/* A piece of memory, as far as it was readable. */
struct walk_buffer {
	taddr_t start;               /* address of its data */
	VEC(struct heap_part) parts; /* parts that were read; ascending */
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
