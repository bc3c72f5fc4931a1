/* Walks from chunk to chunk; heap_walk.h has the layout. */
#include "leak/heap_walk.h"

#define IS_BEFORE_USED 1u
#define FLAGS 7u
#define CHUNK_ALIGN 16u
#define CHUNK_MIN 32u
/* A smaller chunk is a fencepost: the heap ends, or memory that is not malloc's follows. */
#define FENCEPOST_MAX 16u
/*
 * With larger chunks a walk is short, so no guess is needed. A walk from a wrong guess joins the
 * right one within this distance, unless it fails.
 */
#define GUESS_BYTES 4096u

void heap_walk_init(struct heap_walk *w, taddr_t start, taddr_t end, taddr_t top)
{
	*w = (struct heap_walk){.start = start, .end = end, .bound = end, .top = top, .at = start};
	if (start % CHUNK_ALIGN || start >= end || (top && (top < start || top >= end)))
		w->state = HEAP_WALK_FAILED;
}

void heap_walk_deinit(struct heap_walk *w)
{
	vec_deinit(&w->free);
}

/* No word between a free chunk's address and the size of the next chunk belongs to a block. */
static void add_free(struct heap_walk *w, taddr_t chunk, taddr_t end)
{
	*vec_add(&w->free) = (struct heap_part){chunk + sizeof(uint64_t), end};
}

/* Handles the chunk w->at, whose size word is @head. */
static void step(struct heap_walk *w, uint64_t head)
{
	uint64_t size = head & ~(uint64_t)FLAGS;

	if (!(head & IS_BEFORE_USED)) {
		if (!w->before) {
			w->state = HEAP_WALK_FAILED;
			return;
		}
		add_free(w, w->before, w->at + sizeof(uint64_t));
	}
	if (w->at == w->top) {
		add_free(w, w->at, w->end);
		w->state = HEAP_WALK_DONE;
	} else if (size <= FENCEPOST_MAX && size % CHUNK_ALIGN == 0 && w->before) {
		w->end = w->at;
		w->state = HEAP_WALK_DONE;
	} else if (size < CHUNK_MIN || size % CHUNK_ALIGN || size >= w->end - w->at) {
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
		uint64_t size = head & ~(uint64_t)FLAGS;

		if (!(head & IS_BEFORE_USED) || size < CHUNK_MIN || size % CHUNK_ALIGN ||
		    size >= end - at)
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
	taddr_t first = ROUND_UP(MAX(addr, w->start), (taddr_t)CHUNK_ALIGN);
	taddr_t last = MIN(addr + size, w->bound);

	g->walk.bound = w->bound;
	g->walk.top = w->top;
	g->is_made = false;
	if (first >= last || last - first < 2 * GUESS_BYTES)
		return;
	for (taddr_t at = first; at < first + GUESS_BYTES; at += CHUNK_ALIGN) {
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

void heap_walk_feed_guessed(struct heap_walk *w, const struct heap_guess *g, taddr_t addr,
			    const uint64_t *word, size_t size)
{
	if (g->is_made && g->walk.start < addr + size) {
		heap_walk_feed(w, addr, word, g->walk.start - addr + sizeof(*word));
		if (w->state == HEAP_WALK_RUNS && w->at == g->walk.start &&
		    w->before == g->before) {
			for (size_t i = 0; i < g->walk.free.count; i++)
				*vec_add(&w->free) = g->walk.free.data[i];
			w->at = g->walk.at;
			w->before = g->walk.before;
		}
	}
	heap_walk_feed(w, addr, word, size);
}
