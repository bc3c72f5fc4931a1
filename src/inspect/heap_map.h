/*
 * The heaps page by page, for a picture: a cell is one page, or several where cells would be too
 * many.
 */
#ifndef PTMEM_INSPECT_HEAP_MAP_H
#define PTMEM_INSPECT_HEAP_MAP_H

#include "inspect/account.h"
#include "inspect/glibc.h"

#define HEAP_MAP_CELLS 16384u /* at most, and one more for each heap */

struct heap_cell {
	uint64_t live;          /* bytes, on pages that count */
	uint32_t pages;         /* that are resident or swapped out */
	uint32_t nearly_empty;  /* of these, with a live byte, but at most PINNED_FEW */
};

struct heap_map_heap {
	taddr_t start, end;     /* whole cells from the start on */
	uint32_t arena;         /* index */
	size_t first, count;    /* cells */
};

struct heap_map {
	uint32_t pages_per_cell; /* a power of two */
	VEC(struct heap_map_heap) heaps; /* ascending, as in struct glibc */
	VEC(struct heap_cell) cells;
};

void heap_map_init(struct heap_map *m, const struct glibc *g);
void heap_map_deinit(struct heap_map *m);

/* The page at @page of heap number @heap counts, and @live bytes of it are live. */
void heap_map_add_page(struct heap_map *m, size_t heap, taddr_t page, uint32_t live);

/*
 * Of heap number @heap: each page of [@start, @end) that counts by @look has @live bytes that are
 * live.
 */
void heap_map_add(struct heap_map *m, size_t heap, struct glibc_range range, uint32_t live,
		  struct account *look);

#endif
