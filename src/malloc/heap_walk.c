/* Walks from chunk to chunk; heap_walk.h has the layout. */
#include "malloc/heap_walk.h"

#include <string.h>

#include "malloc/glibc.h"

/*
 * With larger chunks a walk is short, so no guess is needed. A walk from a wrong guess joins the
 * right one within this distance, unless it fails.
 */
#define GUESS_BYTES 4096u

void heap_walk_init(struct heap_walk *w, taddr_t start, taddr_t end, taddr_t top)
{
	*w = (struct heap_walk){.start = start, .end = end, .bound = end, .top = top, .at = start};
	if (start % GLIBC_ALIGN || start >= end || (top && (top < start || top >= end)))
		w->state = HEAP_WALK_FAILED;
}

void heap_walk_deinit(struct heap_walk *w)
{
	vec_deinit(&w->free);
}

/* No word between a free chunk's address and the size of the next chunk belongs to a block. */
static void add_free(struct heap_walk *w, taddr_t chunk, taddr_t end)
{
	*vec_add(&w->free) = (struct addr_range){chunk + sizeof(uint64_t), end};
}

/* Handles the chunk w->at, whose size word is @head. */
static void step(struct heap_walk *w, uint64_t head)
{
	uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

	if (!(head & GLIBC_IS_BEFORE_USED)) {
		if (!w->before) {
			w->state = HEAP_WALK_FAILED;
			return;
		}
		add_free(w, w->before, w->at + sizeof(uint64_t));
	}
	if (w->at == w->top) {
		add_free(w, w->at, w->end);
		w->state = HEAP_WALK_DONE;
	} else if (size <= GLIBC_FENCEPOST && size % GLIBC_ALIGN == 0 && w->before) {
		w->end = w->at;
		w->state = HEAP_WALK_DONE;
	} else if (size < GLIBC_CHUNK_MIN || size % GLIBC_ALIGN || size >= w->end - w->at) {
		w->state = HEAP_WALK_FAILED;
	} else {
		w->before = w->at;
		w->at += size;
	}
}

/*
 * Skips chunks in use that follow chunks in use, of which only the size matters, up to @last. Then
 * w->at is another chunk, or beyond @last. Does not access *w: each address depends on the previous
 * one, and millions of these steps are taken while the target is stopped.
 */
static void pass_used(struct heap_walk *w, taddr_t addr, const uint64_t *word, taddr_t last)
{
	taddr_t at = w->at, before = w->before, top = w->top, end = w->end;

	while (at <= last && at != top) {
		uint64_t head = word[(at + sizeof(*word) - addr) / sizeof(*word)];
		uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

		if (!(head & GLIBC_IS_BEFORE_USED) || size < GLIBC_CHUNK_MIN ||
		    size % GLIBC_ALIGN || size >= end - at)
			break;
		before = at;
		at += size;
	}
	w->at = at;
	w->before = before;
}

void heap_walk_feed(struct heap_walk *w, taddr_t addr, const uint64_t *word, size_t size)
{
	while (w->state == HEAP_WALK_RUNS && w->at + sizeof(*word) < addr + size) {
		if (w->at + sizeof(*word) < addr) {
			w->state = HEAP_WALK_FAILED; /* unreadable memory */
			break;
		}
		step(w, word[(w->at + sizeof(*word) - addr) / sizeof(*word)]);
		if (w->state == HEAP_WALK_RUNS)
			pass_used(w, addr, word, addr + size - 2 * sizeof(*word));
	}
}

/* -- guesses -- */

/* Whether a walk from @at stays valid through all of the memory fed. */
static bool can_walk(struct heap_walk *g, taddr_t at, taddr_t addr, const uint64_t *word,
		     size_t size)
{
	g->start = g->at = at;
	g->before = 0;
	g->end = g->bound;
	g->free.count = 0;
	g->state = g->top && at > g->top ? HEAP_WALK_FAILED : HEAP_WALK_RUNS;
	heap_walk_feed(g, addr, word, size);
	return g->state == HEAP_WALK_RUNS;
}

void heap_walk_guess(struct heap_guess *g, const struct heap_walk *w, taddr_t addr,
		     const uint64_t *word, size_t size)
{
	taddr_t first = ROUND_UP(MAX(addr, w->start), (taddr_t)GLIBC_ALIGN);
	taddr_t last = MIN(addr + size, w->bound);

	g->walk.bound = w->bound;
	g->walk.top = w->top;
	g->is_made = false;
	if (first >= last || last - first < 2 * GUESS_BYTES)
		return;
	for (taddr_t at = first; at < first + GUESS_BYTES; at += GLIBC_ALIGN) {
		if (!can_walk(&g->walk, at, addr, word, at + GUESS_BYTES - addr))
			continue;
		g->walk.start = g->walk.at;
		g->before = g->walk.before;
		g->walk.free.count = 0;
		heap_walk_feed(&g->walk, addr, word, size);
		g->is_made = g->walk.state == HEAP_WALK_RUNS;
		return;
	}
}

void heap_guess_deinit(struct heap_guess *g)
{
	heap_walk_deinit(&g->walk);
}

/* Like heap_walk_feed. The guess is used only if the walk reaches its first two chunks. */
static void heap_walk_feed_guessed(struct heap_walk *w, const struct heap_guess *g, taddr_t addr,
				   const uint64_t *word, size_t size)
{
	if (g->is_made && g->walk.start < addr + size) {
		heap_walk_feed(w, addr, word, g->walk.start - addr + sizeof(*word));
		if (w->state == HEAP_WALK_RUNS && w->at == g->walk.start &&
		    w->before == g->before) {
			vec_append(&w->free, &g->walk.free);
			w->at = g->walk.at;
			w->before = g->walk.before;
		}
	}
	heap_walk_feed(w, addr, word, size);
}

/* Reorders pieces so that threads need not wait; heap_walk.h has an overview. */

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

void walk_queue_deinit(struct walk_queue *q)
{
	for (size_t i = 0; i < q->spare.count; i++) {
		heap_guess_deinit(&q->spare.data[i]->guess);
		vec_deinit(&q->spare.data[i]->parts);
		free(q->spare.data[i]);
	}
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
	struct addr_range part = b->parts.data[0];

	b->guess.is_made = false;
	if (b->parts.count == 1 && part.start == b->start)
		heap_walk_guess(&b->guess, &q->walks.data[find_walk(q, b->start)], part.start,
				b->data, part.end - part.start);
}

static void walk_part(struct walk_queue *q, const struct walk_buffer *b, struct addr_range part)
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
