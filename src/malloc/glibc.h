/*
 * glibc's malloc (2.28 to 2.44, 64 bits) in a stopped process: its arenas, their heaps, its
 * parameters. Recognized by their contents, since a stripped libc has no symbols for them, then
 * verified by consistency checks. Layouts, from the definitions in malloc/malloc.c and
 * malloc/arena.c:
 *
 *	malloc_state  0 mutex, 4 flags, 8 have_fastchunks, 16 fastbins[10], 96 top,
 *	              104 last_remainder, 112 bins[254], 2144 binmap, 2160 next, 2168 next_free,
 *	              2176 attached_threads, 2184 system_mem, 2192 max_system_mem; 2200 bytes
 *	since 2.43    0 mutex, 4 flags, 8 top, 16 last_remainder, 24 bins, then the same;
 *	              2112 bytes
 *	heap_info     0 arena, 8 previous heap, 16 size, 24 accessible size;
 *	              32 bytes; 48 since 2.35
 *	malloc_par    see glibc_heaps.c
 */
#ifndef PTMEM_MALLOC_GLIBC_H
#define PTMEM_MALLOC_GLIBC_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/memory.h"

/* 2.N: those with the structures above. */
#define GLIBC_MINOR_MIN 28u
#define GLIBC_MINOR_MAX 44u

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
#define GLIBC_ALIGN 16u      /* chunks and blocks are multiples of it */
/* A chunk without a block, where a heap or a part of it ends. */
#define GLIBC_FENCEPOST 16u

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
	taddr_t start, end;     /* of the memory for chunks */
	taddr_t top_end;        /* where the top chunk ends; the end if there is none */
	taddr_t map_start;      /* where the arena or heap header is; start if there is none */
	taddr_t top;            /* the top chunk; 0 = the heap ends with fenceposts */
	taddr_t owner;          /* address of the arena; 0 of the main one */
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

/*
 * Looks for the main arena in @data (ascending, @count): the writable data of the program and its
 * libraries. Without one, @out has no arena. Free @out with glibc_deinit.
 */
void glibc_find(struct inspect_memory *m, const struct addr_range *data, size_t count,
		struct glibc *out);
void glibc_deinit(struct glibc *g);

/*
 * Whether the words at @chunk, reached through a list, may be a chunk of a heap; *size_out is its
 * size.
 */
bool glibc_is_chunk(struct inspect_memory *m, const struct glibc *g, taddr_t chunk,
		    uint64_t *size_out);

/*
 * Free chunks that their heap marks as in use (in threads' caches and fastbins), and those on the
 * unsorted lists.
 *
 * A thread's cache (struct tcache_perthread_struct) is a chunk of its own; the only pointer to it
 * is a thread-local variable, at the same distance from the thread pointer in all threads:
 *
 *	         to 2.29        since 2.30       since 2.42
 *	counts   char[64]       uint16_t[64]     uint16_t[76]: blocks that may still be added
 *	entries  at 64: [64]    at 128: [64]     at 152: [76]   the first block of each list
 *
 * List i holds chunks of 32 + 16 i bytes; list 64 + n, since 2.42, those of 2^(10+n) to 2^(11+n)
 * bytes that are too large for the others. Since 2.43, the variable of a thread without a cache
 * points to constants of the library's. The first word of a block points to the next one. Since
 * 2.32 that word is xor'ed with its own address >> 12, also in fastbins.
 */

enum glibc_list { GLIBC_TCACHE, GLIBC_FASTBIN, GLIBC_UNSORTED, GLIBC_TCACHE_ITSELF };

#define THREAD_INTERRUPTED 4u

struct glibc_thread {
	pid_t tid;
	taddr_t sp, thread_pointer;
	/* stack pointers of code that signal handlers on its stacks interrupted, innermost first */
	taddr_t interrupted[THREAD_INTERRUPTED];
	uint32_t interrupted_count;
	bool is_inside;         /* the thread is inside malloc */
	taddr_t way_out;        /* where malloc returns to the program; 0 = unknown */
};

/* A chunk on a list. */
struct glibc_listed {
	taddr_t chunk;
	uint64_t size;
	uint32_t list;          /* enum glibc_list */
};

struct glibc_lists {
	VEC(struct glibc_listed) chunks; /* ascending */
	uint32_t caches;        /* threads that have a cache */
	uint32_t broken;        /* lists that leave the heaps or do not end; skipped */
};

/* Follows all lists of @g, and finds the caches of the @count threads at @thread. */
void glibc_lists_read(struct inspect_memory *m, const struct glibc *g,
		      const struct glibc_thread *thread, size_t count, struct glibc_lists *out);
void glibc_lists_deinit(struct glibc_lists *l);

/*
 * The address where the thread-local variables of the program and its libraries begin; they end at
 * @thread_pointer. Returns @thread_pointer if unknown.
 */
taddr_t glibc_tls_start(struct inspect_memory *m, taddr_t thread_pointer);

/* All chunks of a heap in ascending order, each with its state. */

enum glibc_chunk_kind {
	CHUNK_LIVE,
	CHUNK_TCACHE, CHUNK_FASTBIN, CHUNK_UNSORTED, CHUNK_BIN, /* free */
	CHUNK_TOP,              /* free, at the end of the arena */
	CHUNK_OWN,              /* used by malloc itself: fenceposts, a thread's cache */
	CHUNK_FOREIGN,          /* the program's own, from sbrk, between parts of the heap */
	CHUNK_UNKNOWN,          /* the heap cannot be walked from here on */
};

struct glibc_chunk {
	taddr_t addr;           /* its block is at + GLIBC_HEADER */
	uint64_t size;          /* distance to the next chunk */
	enum glibc_chunk_kind kind;
	uint32_t type;          /* of its block, for a visitor that knows it; 0 in a walk */
};

struct glibc_visitor {
	/* returns false to end the walk */
	bool (*fn)(void *ctx, const struct glibc_chunk *chunk);
	void *ctx;
	/*
	 * counts elements of lists that are not chunks: lists that were being changed, or are
	 * corrupt
	 */
	uint64_t *unlisted;
};

/*
 * Calls @v->fn for each chunk of @h; together they cover [h->start, h->end). Returns false if a
 * part of @h could not be walked.
 */
bool glibc_walk(struct inspect_memory *m, const struct glibc_heap *h,
		const struct glibc_lists *lists, const struct glibc_visitor *v);

/*
 * Large blocks that malloc mapped separately:
 *
 *	mapping     word: bytes before the chunk (0 unless an alignment was requested)
 *	            word: size of the chunk | 2, up to the end of the mapping
 *	            block
 *
 * Since 2.43 the chunk ends 16 bytes before the mapping, and 8 of them are the block's as in other
 * chunks; bit 0 of the first word says that the pages are huge.
 *
 * The kernel merges adjacent mappings, so such a block may begin at any page. Where the program has
 * called mprotect or madvise within it, it covers several mappings.
 */

struct glibc_mmapped {
	taddr_t start, end;     /* of the mapping */
	taddr_t block;
	bool is_first;          /* at the start of a mapping, or right behind such a block */
};

struct glibc_mmapped_list {
	VEC(struct glibc_mmapped) list; /* ascending */
	uint64_t pages_left;    /* to be read for blocks that were moved; 0 = do not */
	taddr_t covered;        /* the end of the last one that is_first */
};

/* What malloc_usable_size returns for the block. */
uint64_t glibc_mmapped_usable(const struct glibc *g, const struct glibc_mmapped *b);

/*
 * Adds what looks like a block and begins in @range, anonymous memory without a heap: it may extend
 * to @end. Memory of other origin can look like one, the heap of a Java program for example, so the
 * list must pass glibc_mmapped_choose.
 */
void glibc_mmapped_find(struct inspect_memory *m, const struct glibc *g, struct addr_range range,
			taddr_t end, struct glibc_mmapped_list *out);
/* The same of those alone that begin at @range.start, or each behind the one before. */
void glibc_mmapped_find_first(struct inspect_memory *m, const struct glibc *g,
			      struct addr_range range, taddr_t end,
			      struct glibc_mmapped_list *out);
/*
 * Leaves in @list the blocks whose number and sum are what malloc has counted (g->params), if only
 * one choice of them is. Returns whether that was possible; else @list has no overlaps, but may
 * have more or fewer than there are.
 */
bool glibc_mmapped_choose(const struct glibc *g, struct glibc_mmapped_list *list);

/*
 * Finds the arenas of glibc's malloc (struct malloc_state). A stripped library has no symbols for
 * them, so they are recognized by their contents, which have the same layout since 2.10:
 *
 *	bins - 112   lock, flags, fastbins    (- 104 before 2.27; - 24 since 2.43, without fastbins)
 *	bins - 16    top                      the chunk at the heap's end
 *	bins - 8     last remainder
 *	bins         127 pairs: heads of lists of free chunks; a pair that points to the
 *	             chunk that it would be part of is an empty list
 *	bins + 2032  bits of used bins
 *	bins + 2048  next arena               a ring that includes the main arena
 *	bins + 2072  bytes from the system
 *
 * All these pointers are to chunks, not to blocks; but the last 8 bytes of a block may be in the
 * next chunk.
 *
 * The main arena's heap comes from sbrk. The others have linked heaps of 64 MiB of address space,
 * aligned to that size.
 */

struct arenas {
	VEC(struct addr_range) states;
	VEC(struct glibc_heap) heaps; /* without the numbers of their arenas */
};

/*
 * Looks for a main arena in [@start, @end), the data of a library or program. Adds it and all
 * arenas that it leads to. @read reads from the target, which must be stopped.
 */
void arenas_search(struct arenas *a, taddr_t start, taddr_t end, memory_read_fn *read, void *ctx);

/* The heaps found, ascending and disjoint. */
void arenas_sort(struct arenas *a);

void arenas_deinit(struct arenas *a);

#endif
