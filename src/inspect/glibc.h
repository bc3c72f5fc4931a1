/*
 * glibc's malloc (2.28 to 2.44, 64 bits) in a stopped process: its arenas, their heaps, its
 * parameters. Recognized by their contents (leak/arenas.h), since a stripped libc has no symbols
 * for them, then verified by consistency checks. Layouts, from the definitions in malloc/malloc.c
 * and malloc/arena.c:
 *
 *	malloc_state  0 mutex, 4 flags, 8 have_fastchunks, 16 fastbins[10], 96 top,
 *	              104 last_remainder, 112 bins[254], 2144 binmap, 2160 next, 2168 next_free,
 *	              2176 attached_threads, 2184 system_mem, 2192 max_system_mem; 2200 bytes
 *	since 2.43    0 mutex, 4 flags, 8 top, 16 last_remainder, 24 bins, then the same;
 *	              2112 bytes
 *	heap_info     0 arena, 8 previous heap, 16 size, 24 accessible size;
 *	              32 bytes; 48 since 2.35
 *	malloc_par    see glibc_params.c
 */
#ifndef PTMEM_INSPECT_GLIBC_H
#define PTMEM_INSPECT_GLIBC_H

#include "base/types.h"
#include "base/vec.h"
#include "inspect/memory.h"
#include "leak/arenas.h"

#define GLIBC_FASTBINS 10u
#define GLIBC_HEADER 16u     /* offset from a chunk to its block */
#define GLIBC_CHUNK_MIN 32u
#define GLIBC_STATE_SIZE_FAST 2200u /* of an arena with fastbins */
#define GLIBC_BINS_AT 112u
#define GLIBC_BINS_AT_NO_FAST 24u /* since 2.43: without fastbins */
#define GLIBC_IS_BEFORE_USED 1u
#define GLIBC_IS_MMAPPED 2u
#define GLIBC_IS_IN_HEAP 4u  /* in any arena but the main one */
#define GLIBC_FLAGS 7u

struct glibc_arena {
	taddr_t addr;
	uint64_t size;
	bool is_main;
	bool is_locked;
	bool is_contiguous;     /* the main arena: it alone grows by brk */
	taddr_t top;
	taddr_t fastbin[GLIBC_FASTBINS];
	taddr_t unsorted;       /* first chunk of the list; unsorted_head if empty */
	taddr_t unsorted_head;
	uint64_t threads;       /* threads that allocate from it */
	uint64_t system_bytes, most_system_bytes;
	uint64_t found_bytes;   /* of the heaps found; less than system_bytes if some were missed */
};

/* Memory in which chunks follow one another, with what precedes them. */
struct glibc_heap {
	taddr_t map_start;      /* where the arena or heap header is; start if there is none */
	taddr_t start, end;     /* of the chunks */
	taddr_t top;            /* the top chunk; 0 = the heap ends with fenceposts */
	uint32_t arena;         /* index of the arena */
	bool is_main;           /* of the main arena, which may have several */
};

/* mp_: settings of mallopt and the tunables. */
struct glibc_params {
	bool is_known;
	uint64_t trim_threshold, top_pad, mmap_threshold, arena_test, arena_max;
	uint32_t mmaps, mmaps_max, most_mmaps;
	bool is_fixed;          /* the thresholds are fixed, and do not adapt to freed sizes */
	uint64_t mmapped_bytes, most_mmapped_bytes;
	taddr_t sbrk_base;
	uint64_t tcache_bins, tcache_max_bytes, tcache_count;
};

struct glibc {
	VEC(struct glibc_arena) arenas; /* the main arena is first */
	VEC(struct glibc_heap) heaps;   /* ascending, disjoint */
	struct glibc_params params;
	uint32_t lost_heaps;            /* not found, although malloc has used them */
};

struct glibc_range {
	taddr_t start, end;
};

/*
 * Looks for the main arena in @data (ascending, @count): the writable data of the program and its
 * libraries. Without one, @out has no arena. Free @out with glibc_deinit.
 */
void glibc_find(struct inspect_memory *m, const struct glibc_range *data, size_t count,
		struct glibc *out);
void glibc_deinit(struct glibc *g);

/*
 * Whether the words at @chunk, reached through a list, may be a chunk of a heap; *size_out is its
 * size.
 */
bool glibc_is_chunk(struct inspect_memory *m, const struct glibc *g, taddr_t chunk,
		    uint64_t *size_out);

#endif
