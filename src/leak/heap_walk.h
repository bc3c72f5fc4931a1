/*
 * Which parts of a glibc heap are free? Its chunks lie one after the other, and each holds its
 * size and whether the one before it is in use (the GNU C Library's malloc/malloc.c, "chunk"):
 *
 *	at      size of the chunk before, if that is free; else the last word of its block
 *	at + 8  size | 1 if the chunk before is in use
 *	at + 16 what malloc returned
 *
 * Chunks that wait in a thread's cache or in a fastbin look as if they were in use.
 *
 * Memory comes in pieces, in ascending order. What does not lead from the first chunk to the
 * last is no such heap, or one that is being changed: then nothing is known of it.
 */
#ifndef PTMEM_LEAK_HEAP_WALK_H
#define PTMEM_LEAK_HEAP_WALK_H

#include "base/types.h"
#include "base/vec.h"

struct heap_part {
	taddr_t start, end;
};

enum heap_walk_state { HEAP_WALK_RUNS, HEAP_WALK_DONE, HEAP_WALK_FAILED };

struct heap_walk {
	taddr_t start, end;   /* of the first chunk; after the last: final when the walk is done */
	taddr_t top;          /* the last chunk, which is free; 0 = a fencepost ends the heap */
	taddr_t bound;        /* what end was before */
	taddr_t at, before;   /* the chunk that comes next; the one before, 0 = none */
	enum heap_walk_state state;
	VEC(struct heap_part) free; /* ascending */
};

/*
 * A walk through one piece of memory from a chunk that was guessed, by a thread that has the piece
 * in its cache when it is not known yet where the piece's first chunk is.
 */
struct heap_guess {
	struct heap_walk walk;
	taddr_t before;       /* the chunk before walk.start */
	bool is_made;
};

/* A heap whose chunks begin at @start. @end: bound of its memory. */
void heap_walk_init(struct heap_walk *w, taddr_t start, taddr_t end, taddr_t top);
void heap_walk_deinit(struct heap_walk *w);

/* @word: the memory at @addr, @size bytes (whole words). */
void heap_walk_feed(struct heap_walk *w, taddr_t addr, const uint64_t *word, size_t size);

/*
 * For memory that will be fed to @w, which another thread may walk meanwhile. @g: zero, or a guess
 * of other memory.
 */
void heap_walk_guess(struct heap_guess *g, const struct heap_walk *w, taddr_t addr,
		     const uint64_t *word, size_t size);
void heap_guess_deinit(struct heap_guess *g);

/* As heap_walk_feed. What was guessed is used only if the walk reaches its first two chunks. */
void heap_walk_feed_guessed(struct heap_walk *w, const struct heap_guess *g, taddr_t addr,
			    const uint64_t *word, size_t size);

/* How many bytes a block of @size bytes may use: up to the next chunk's size. */
static inline uint64_t heap_usable_size(uint64_t size)
{
	return size <= 24 ? 24 : ROUND_UP(size + 8, UINT64_C(16)) - 8;
}

#endif
