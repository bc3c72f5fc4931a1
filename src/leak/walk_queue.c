/* Reorders pieces so that threads need not wait; walk_queue.h has an overview. */
#include "leak/walk_queue.h"

#include <string.h>

/*
 * This many pieces, 32 MiB, are read ahead of a missing one: its thread may be preempted for some
 * milliseconds.
 */
#define AHEAD_MAX 128u

struct queued_piece {
	struct walk_buffer *buffer; /* NULL: no heap in it */
	bool is_read;
};

void walk_queue_init(struct walk_queue *q)
{
	*q = (struct walk_queue){0};
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->has_advanced, NULL);
}

static void free_buffer(struct walk_buffer *b)
{
	heap_guess_deinit(&b->guess);
	vec_deinit(&b->parts);
	free(b);
}

void walk_queue_deinit(struct walk_queue *q)
{
	for (size_t i = 0; i < q->spare.count; i++)
		free_buffer(q->spare.data[i]);
	for (size_t i = 0; i < q->walks.count; i++)
		heap_walk_deinit(&q->walks.data[i]);
	vec_deinit(&q->spare);
	vec_deinit(&q->walks);
	free(q->piece);
	q->piece = NULL;
	pthread_cond_destroy(&q->has_advanced);
	pthread_mutex_destroy(&q->lock);
}

void walk_queue_add_heap(struct walk_queue *q, taddr_t start, taddr_t end, taddr_t top)
{
	heap_walk_init(vec_add(&q->walks), start, end, top);
}

void walk_queue_start(struct walk_queue *q, size_t pieces)
{
	free(q->piece);
	q->piece = xcalloc(pieces + 1, sizeof(*q->piece));
	q->count = pieces;
	q->next = 0;
}

struct walk_buffer *walk_queue_take(struct walk_queue *q, taddr_t start)
{
	struct walk_buffer *b = NULL;

	pthread_mutex_lock(&q->lock);
	if (q->spare.count > 0)
		b = q->spare.data[--q->spare.count];
	pthread_mutex_unlock(&q->lock);
	if (!b) {
		b = xmalloc(sizeof(*b));
		memset(b, 0, offsetof(struct walk_buffer, data));
	}
	b->start = start;
	b->parts.count = 0;
	return b;
}

void walk_queue_give(struct walk_queue *q, struct walk_buffer *buffer)
{
	pthread_mutex_lock(&q->lock);
	*vec_add(&q->spare) = buffer;
	pthread_mutex_unlock(&q->lock);
}

/* -- walking -- */

/* The first heap with memory at or after @addr. */
static size_t find_walk(const struct walk_queue *q, taddr_t addr)
{
	return vec_search(&q->walks, w, w->bound <= addr);
}

static bool is_of_heap(const struct walk_queue *q, const struct walk_buffer *b)
{
	size_t i = find_walk(q, b->start);

	return b->parts.count > 0 && i < q->walks.count &&
	       q->walks.data[i].start < b->parts.data[b->parts.count - 1].end;
}

/* Called while the piece is in the cache. Another thread may walk heaps meanwhile. */
static void guess(const struct walk_queue *q, struct walk_buffer *b)
{
	struct heap_part part = b->parts.data[0];

	b->guess.is_made = false;
	if (b->parts.count == 1 && part.start == b->start)
		heap_walk_guess(&b->guess, &q->walks.data[find_walk(q, b->start)], part.start,
				b->data, part.end - part.start);
}

static void walk_part(struct walk_queue *q, const struct walk_buffer *b, struct heap_part part)
{
	static const struct heap_guess none;
	const uint64_t *word = &b->data[(part.start - b->start) / sizeof(*word)];
	size_t first = find_walk(q, part.start);

	for (size_t i = first; i < q->walks.count && q->walks.data[i].start < part.end; i++)
		heap_walk_feed_guessed(&q->walks.data[i], i == first ? &b->guess : &none,
				       part.start, word, part.end - part.start);
}

/*
 * Walks the next piece, which must have been read. Called with the lock held; drops it
 * meanwhile.
 */
static void walk_next(struct walk_queue *q)
{
	struct walk_buffer *b = q->piece[q->next].buffer;

	if (b) {
		pthread_mutex_unlock(&q->lock);
		for (size_t i = 0; i < b->parts.count; i++)
			walk_part(q, b, b->parts.data[i]);
		pthread_mutex_lock(&q->lock);
		*vec_add(&q->spare) = b;
	}
	q->next++;
	pthread_cond_broadcast(&q->has_advanced);
}

void walk_queue_put(struct walk_queue *q, size_t number, struct walk_buffer *buffer)
{
	struct queued_piece *piece = &q->piece[number];
	bool is_needed = is_of_heap(q, buffer);

	if (is_needed)
		guess(q, buffer);
	pthread_mutex_lock(&q->lock);
	if (is_needed) {
		while (number - q->next > AHEAD_MAX)
			pthread_cond_wait(&q->has_advanced, &q->lock);
		piece->buffer = buffer;
	} else {
		*vec_add(&q->spare) = buffer;
	}
	piece->is_read = true;
	if (!q->is_walking) {
		q->is_walking = true;
		while (q->next < q->count && q->piece[q->next].is_read)
			walk_next(q);
		q->is_walking = false;
	}
	pthread_mutex_unlock(&q->lock);
}
