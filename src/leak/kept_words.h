/*
 * Words of memory that are kept for later, page by page, and read once in the same
 * order. Addresses that differ in their lower halves alone take four bytes each:
 *
 *	page: {address, mask of its words, upper half} low low low ...
 *	      {address, mask of its words, WIDE}       value value ...
 *
 * They lie in chunks of some megabytes. A chunk goes back to the kernel when it was
 * read, so what is made of the words may take its place.
 */
#ifndef PTMEM_LEAK_KEPT_WORDS_H
#define PTMEM_LEAK_KEPT_WORDS_H

#include "base/types.h"
#include "base/vec.h"

#define PAGE_WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))

struct kept_page {
	taddr_t addr;
	uint64_t mask[PAGE_WORDS / 64]; /* a bit for each word that was kept */
	uint32_t upper;                 /* half of all values, or KEPT_WIDE */
	uint32_t count;                 /* values */
};

/* Chunks to be used by several writers at once. */
struct kept_spare {
	VEC(uint64_t *) chunks;
	size_t taken; /* the first so many; changed atomically */
};

struct kept_words {
	VEC(uint64_t *) chunks;
	struct kept_spare *spare;
	size_t writing;  /* place in the last chunk, in words */
	size_t reading;  /* the chunk that is read */
	size_t at;       /* place in it */
};

/* @spare outlives the writers. */
void kept_words_init(struct kept_words *w, struct kept_spare *spare);
void kept_words_deinit(struct kept_words *w);

/* Adds a page of @count > 0 values, whose words @mask gives in order. */
void kept_words_put(struct kept_words *w, taddr_t addr, const uint64_t *mask, const uint64_t *value,
		    uint32_t count);

/* How much memory they take. */
uint64_t kept_words_bytes(const struct kept_words *w);

/* The next page, of as many as were put. @value: room for PAGE_WORDS. */
void kept_words_take(struct kept_words *w, struct kept_page *page_out, uint64_t *value_out);

/* Takes chunks for @bytes of kept words, so that writers find them ready. */
void kept_spare_fill(struct kept_spare *s, uint64_t bytes);
/* Gives back those that nobody took. */
void kept_spare_drop(struct kept_spare *s);

#endif
