/*
 * The pages of a heap by how much of each is live: one live block pins its page, however little of
 * it the block needs. Only pages count that are resident or swapped out.
 */
#ifndef PTMEM_INSPECT_PINNED_H
#define PTMEM_INSPECT_PINNED_H

#include "base/types.h"
#include "inspect/account.h"

struct heap_map;

/* Upper bounds of live bytes per page. */
#define PINNED_STEPS 6u
extern const uint32_t pinned_step[PINNED_STEPS];
#define PINNED_FEW 1024u        /* a page with at most as many live bytes is nearly empty */

/* Sizes of chunks: multiples of 16 up to 4096, then powers of two. */
#define SIZE_CLASSES (4096u / 16 + 1 + 52)

struct pinned_class {
	uint64_t blocks, bytes;  /* in use, of this size: chunks */
	uint64_t pages;          /* nearly empty ones that these pin, perhaps with others */
};

/* What all heaps of an arena add up to. */
struct pinned_pages {
	uint64_t free;                 /* without a live byte */
	uint64_t step[PINNED_STEPS];   /* with at most pinned_step[i] live bytes */
	uint64_t free_bytes;           /* not live, on pages with a live byte */
};

/* The walk through one heap: init; add ascending; finish. */
struct pinned {
	struct account account;        /* for look-ups alone */
	struct pinned_pages *out;
	struct pinned_class *classes;  /* SIZE_CLASSES */
	struct heap_map *map;
	size_t heap;                   /* its number there */
	taddr_t page;                  /* that is being filled */
	taddr_t end;                   /* of the heap */
	uint32_t live, count;
	uint16_t class_of[PINNED_FEW / 16]; /* of its live blocks, each class once */
};

/* The largest size of chunks in class @i. */
uint64_t pinned_class_size(uint32_t i);

/* A heap in [@start, @end). @out, @classes and @map grow: set before. */
void pinned_init(struct pinned *p, const struct resident *pages, taddr_t start, taddr_t end);
/* [@start, @end) is live, and part of a chunk of @size bytes; or, of @size 0, malloc's own. */
void pinned_add(struct pinned *p, taddr_t start, taddr_t end, uint64_t size);
void pinned_finish(struct pinned *p);

#endif
