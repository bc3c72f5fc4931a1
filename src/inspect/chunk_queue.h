/*
 * Passes the chunks of a heap from the thread that finds them to one that adds them up, in order
 * and in batches: where blocks are small, adding up takes half of the time.
 */
#ifndef PTMEM_INSPECT_CHUNK_QUEUE_H
#define PTMEM_INSPECT_CHUNK_QUEUE_H

#include <pthread.h>

#include "base/types.h"
#include "inspect/glibc_walk.h"

#define CHUNK_BATCH 1024u
#define CHUNK_BATCHES 8u

typedef void chunk_fn(void *ctx, const struct glibc_chunk *chunk);

struct chunk_batch {
	size_t count;
	struct glibc_chunk chunk[CHUNK_BATCH];
};

struct chunk_queue {
	chunk_fn *fn;
	void *ctx;
	struct chunk_batch *batch; /* a ring of CHUNK_BATCHES */
	struct chunk_batch *current; /* being filled */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;   /* of what follows */
	pthread_cond_t given, returned;
	uint64_t filled, emptied; /* batches, in all */
	bool is_ended;
};

/*
 * @fn is called for each chunk, by another thread if @wants_thread and there is a CPU for it, until
 * chunk_queue_finish has returned.
 */
void chunk_queue_start(struct chunk_queue *q, chunk_fn *fn, void *ctx, bool wants_thread);
/* Waits until @fn was called for all chunks. */
void chunk_queue_finish(struct chunk_queue *q);

/* The current batch is full. */
void chunk_queue_give(struct chunk_queue *q);

static inline void chunk_queue_add(struct chunk_queue *q, const struct glibc_chunk *chunk)
{
	struct chunk_batch *b = q->current;

	b->chunk[b->count++] = *chunk;
	if (b->count == CHUNK_BATCH)
		chunk_queue_give(q);
}

#endif
