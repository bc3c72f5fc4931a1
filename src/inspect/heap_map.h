/*
 * A map of the heaps by page, for drawing: glibc's, then the arenas of Python's allocator. A cell
 * is one page, or several if there were too many.
 */
#ifndef PTMEM_INSPECT_HEAP_MAP_H
#define PTMEM_INSPECT_HEAP_MAP_H

#include "inspect/account.h"
#include "inspect/glibc.h"
#include "inspect/pymalloc.h"

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

/* Counts the page at @page of heap number @heap, of which @live bytes are live. */
void heap_map_add_page(struct heap_map *m, size_t heap, taddr_t page, uint32_t live);

/*
 * Counts each resident or swapped page of [@start, @end), found by @look, in heap number @heap.
 * Each has @live live bytes.
 */
void heap_map_add(struct heap_map *m, size_t heap, struct glibc_range range, uint32_t live,
		  struct account *look);

#endif
