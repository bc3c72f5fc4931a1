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
#ifndef PTMEM_LEAK_HEAP_WALK_H
#define PTMEM_LEAK_HEAP_WALK_H

#include "base/types.h"
#include "base/vec.h"

struct heap_part {
	taddr_t start, end;
};

enum heap_walk_state { HEAP_WALK_RUNS, HEAP_WALK_DONE, HEAP_WALK_FAILED };

struct heap_walk {
	taddr_t start, end;   /* first chunk; end of the last, final after the walk */
	taddr_t top;          /* the last chunk, which is free; 0 = a fencepost ends the heap */
	taddr_t bound;        /* the initial value of end */
	taddr_t at, before;   /* the next chunk; the previous one, 0 = none */
	enum heap_walk_state state;
	VEC(struct heap_part) free; /* ascending */
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

/* Like heap_walk_feed. The guess is used only if the walk reaches its first two chunks. */
void heap_walk_feed_guessed(struct heap_walk *w, const struct heap_guess *g, taddr_t addr,
			    const uint64_t *word, size_t size);

/* The usable size of a block of @size bytes: up to the next chunk's size word. */
static inline uint64_t heap_usable_size(uint64_t size)
{
	return size <= 24 ? 24 : ROUND_UP(size + 8, UINT64_C(16)) - 8;
}

#endif
