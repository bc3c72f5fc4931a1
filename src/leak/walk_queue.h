/*
 * Heaps are walked from chunk to chunk (heap_walk.h), so their memory is needed in the order of
 * addresses, but several threads read it, each a piece at a time:
 *
 *	read (any thread, any order) -> queue -> walk (one thread at a time, in order)
 *
 * A thread that read a piece before its turn leaves it here and continues with another buffer. The
 * thread that walks then walks what follows, too. So threads need not wait, unless one is far
 * ahead.
 *
 * To follow chunks through another processor's cache is slow. So the thread that reads a piece also
 * walks it, from a chunk that it guesses (heap_walk_guess). If the walk in order reaches that
 * chunk, the guess was right and its result is used; else the piece is walked again.
 */
#ifndef PTMEM_LEAK_WALK_QUEUE_H
#define PTMEM_LEAK_WALK_QUEUE_H

#include <pthread.h>

#include "base/types.h"
#include "base/vec.h"
#include "leak/heap_walk.h"

#define WALK_PIECE_SIZE (1u << 18)

/* A piece of memory, as far as it could be read. */
struct walk_buffer {
	taddr_t start;               /* of the piece: its data begin with this address */
	VEC(struct heap_part) parts; /* which were read; ascending */
	struct heap_guess guess;     /* of the only part */
	uint64_t data[WALK_PIECE_SIZE / sizeof(uint64_t)];
};

struct walk_queue {
	VEC(struct heap_walk) walks;     /* ascending */
	/* all below: under the lock */
	pthread_mutex_t lock;
	pthread_cond_t has_advanced;
	struct queued_piece *piece;      /* by number */
	size_t count, next;              /* of pieces; the first that was not walked */
	bool is_walking;                 /* a thread walks the piece @next */
	VEC(struct walk_buffer *) spare; /* the last one used is the next to be used */
};

void walk_queue_init(struct walk_queue *q);
void walk_queue_deinit(struct walk_queue *q);

/* Heaps come in ascending order and do not overlap. */
void walk_queue_add_heap(struct walk_queue *q, taddr_t start, taddr_t end, taddr_t top);

/* Ascending pieces numbered from 0 to @pieces - 1 will be put, each once, in any order. */
void walk_queue_start(struct walk_queue *q, size_t pieces);

/* An empty buffer for a piece that begins at @start. Called by several threads, as is put. */
struct walk_buffer *walk_queue_take(struct walk_queue *q, taddr_t start);

/* Gives back a buffer that was taken and not put. */
void walk_queue_give(struct walk_queue *q, struct walk_buffer *buffer);

/*
 * Piece number @number is in @buffer, which returns to the queue. A thread puts a piece before it
 * takes another one, and takes them in ascending order.
 */
void walk_queue_put(struct walk_queue *q, size_t number, struct walk_buffer *buffer);

#endif
