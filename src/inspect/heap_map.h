/*
 * A map of the heaps by page, for drawing: glibc's, then the arenas of Python's allocator. A cell
 * is one page, or several if there were too many.
 */
#ifndef PTMEM_INSPECT_HEAP_MAP_H
#define PTMEM_INSPECT_HEAP_MAP_H

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/account.h"
#include "malloc/glibc.h"
#include "malloc/pymalloc.h"

#define HEAP_MAP_CELLS 16384u /* maximum, plus one for each heap */

struct heap_cell {
	uint64_t live;          /* bytes on resident or swapped pages */
	uint32_t pages;         /* pages that are resident or swapped out */
	uint32_t nearly_empty;  /* pages of these with at most PINNED_FEW live bytes, but not 0 */
};

struct heap_map_heap {
	taddr_t start, end;     /* start of the first cell */
	uint32_t arena;         /* its number; the one after the last is Python's */
	size_t first, count;    /* index of the first cell; number of cells */
};

struct heap_map {
	uint32_t pages_per_cell; /* a power of two */
	VEC(struct heap_map_heap) heaps; /* ascending, as in struct glibc; Python's follow */
	VEC(struct heap_cell) cells;
};

/* The cells of glibc's heaps are empty, those of @python's are filled. */
void heap_map_init(struct heap_map *m, const struct glibc *g, const struct pymalloc *python,
		   struct inspect_memory *memory);
void heap_map_deinit(struct heap_map *m);

/*
 * The pages of a heap by how much of each is live. One live block pins its whole page, however
 * small the block is. Only resident or swapped pages count.
 */

/*
 * Nearly empty pages that blocks pin, and how many of these have no other live byte: they would
 * return if these blocks were elsewhere.
 */
struct pin_count {
	uint64_t pages, alone;
};

/* By type. Zero: none yet. */
struct type_pages {
	VEC(struct pin_count) list;
};

/* Upper bounds of live bytes per page. */
#define PINNED_STEPS 6u
extern const uint32_t pinned_step[PINNED_STEPS];
#define PINNED_FEW 1024u        /* a page with at most this many live bytes is nearly empty */

/* Sizes of chunks: multiples of 16 up to 4096, then powers of two. */
#define SIZE_CLASSES (4096u / 16 + 1 + 52)

struct pinned_class {
	uint64_t blocks, bytes;  /* chunks of this size in use */
	uint64_t pages;          /* nearly empty pages that these pin, perhaps with others */
};

/* Sums over all heaps of an arena. */
struct pinned_pages {
	uint64_t free;                 /* pages without a live byte */
	uint64_t step[PINNED_STEPS];   /* pages with at most pinned_step[i] live bytes */
	uint64_t unknown;              /* pages of which nothing, or not all, is known */
	uint64_t free_bytes;           /* bytes not live on pages that have live bytes */
};

/* Which path allocated a block. */
struct pinned_paths {
	uint32_t (*find)(void *ctx, taddr_t block); /* its number, below count; 0 = unknown */
	void *ctx;
	struct pin_count *pages;       /* by path */
	uint32_t count;
};

/* A block on a page, of a class in classes. */
struct pinned_note {
	uint32_t class, type, path;
};

/* The walk through one heap: init; add in ascending order; finish. */
struct pinned {
	struct account account;        /* read only */
	struct pinned_pages *out;
	struct pinned_class *classes;  /* SIZE_CLASSES */
	struct type_pages *type_pages; /* NULL = types are not known */
	const struct pinned_paths *paths; /* NULL = they are not known */
	struct heap_map *map;
	size_t heap;                   /* number of the heap there */
	taddr_t page;                  /* the page being filled */
	taddr_t end;                   /* of the heap */
	bool is_unknown;               /* a part of the page */
	bool has_other;                /* a part of it is live, and no block */
	uint32_t live;                 /* live bytes on the page */
	uint32_t count;
	struct pinned_note note[PINNED_FEW / 16]; /* its live blocks, while they are few */
};

/* A block in use. */
struct pinned_block {
	uint64_t size;  /* of its chunk */
	uint32_t type;  /* an index in struct block_types */
	uint32_t path;  /* number; 0 = unknown */
};

/* The largest size of chunks in class @i. */
uint64_t pinned_class_size(uint32_t i);

/*
 * Starts a heap in [@start, @end). @out, @classes, @type_pages and @map are added to: initialize
 * them before.
 */
void pinned_init(struct pinned *p, const struct resident *pages, taddr_t start, taddr_t end);
/* [@start, @end) is live: part of @block, or of malloc's own data if that is NULL. */
void pinned_add(struct pinned *p, taddr_t start, taddr_t end, const struct pinned_block *block);
/* What is in [@start, @end) is unknown: its pages are neither free nor pinned. */
void pinned_add_unknown(struct pinned *p, taddr_t start, taddr_t end);
/* [@start, @end) is not malloc's: only pages that it shares with the heap count, as pinned. */
void pinned_add_foreign(struct pinned *p, taddr_t start, taddr_t end);
void pinned_finish(struct pinned *p);

#endif
