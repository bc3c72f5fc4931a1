/* See chunk_queue.h. */
#include "inspect/chunk_queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/lanes.h"

static void pass(const struct chunk_queue *q, const struct chunk_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		q->fn(q->ctx, &b->chunk[i]);
}

static void *pass_all(void *ctx)
{
	struct chunk_queue *q = ctx;

	pthread_mutex_lock(&q->lock);
	while (q->emptied < q->filled || !q->is_ended) {
		if (q->emptied == q->filled) {
			pthread_cond_wait(&q->given, &q->lock);
			continue;
		}
		const struct chunk_batch *b = &q->batch[q->emptied % CHUNK_BATCHES];

		pthread_mutex_unlock(&q->lock);
		pass(q, b);
		pthread_mutex_lock(&q->lock);
		q->emptied++;
		pthread_cond_signal(&q->returned);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

void chunk_queue_start(struct chunk_queue *q, chunk_fn *fn, void *ctx, bool wants_thread)
{
	*q = (struct chunk_queue){.fn = fn, .ctx = ctx};
	q->batch = xmalloc((wants_thread ? CHUNK_BATCHES : 1) * sizeof(*q->batch));
	q->current = q->batch;
	q->current->count = 0;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->given, NULL);
	pthread_cond_init(&q->returned, NULL);
	q->has_thread = wants_thread && lanes_for(2) > 1 && lane_start(&q->thread, pass_all, q);
}

void chunk_queue_give(struct chunk_queue *q)
{
	if (!q->has_thread) {
		pass(q, q->current);
	} else {
		pthread_mutex_lock(&q->lock);
		q->filled++;
		/* waking it for each batch would take as long as a part of the work */
		if (q->filled - q->emptied >= CHUNK_BATCHES / 2)
			pthread_cond_signal(&q->given);
		while (q->filled - q->emptied == CHUNK_BATCHES)
			pthread_cond_wait(&q->returned, &q->lock);
		pthread_mutex_unlock(&q->lock);
		q->current = &q->batch[q->filled % CHUNK_BATCHES];
	}
	q->current->count = 0;
}

void chunk_queue_finish(struct chunk_queue *q)
{
	chunk_queue_give(q);
	if (q->has_thread) {
		pthread_mutex_lock(&q->lock);
		q->is_ended = true;
		pthread_cond_signal(&q->given);
		pthread_mutex_unlock(&q->lock);
		pthread_join(q->thread, NULL);
	}
	pthread_cond_destroy(&q->given);
	pthread_cond_destroy(&q->returned);
	pthread_mutex_destroy(&q->lock);
	free(q->batch);
}
