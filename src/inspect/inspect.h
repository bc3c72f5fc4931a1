/*
 * Breaks down the memory of a stopped process: what its resident and swapped pages contain, which
 * heap blocks are in use, and why free memory is not returned.
 */
#ifndef PTMEM_INSPECT_INSPECT_H
#define PTMEM_INSPECT_INSPECT_H

#include "inspect/heap_report.h"
#include "inspect/holders.h"
#include "malloc/allocators.h"
#include "malloc/glibc.h"

/* What inspect_run is given: the memory, threads, objects and registers of a stopped process. */

/* A part of the program or a library, a PT_LOAD segment. */
struct inspect_segment {
	taddr_t start, end;
	bool is_write;
};

struct inspect_input {
	struct resident resident;
	struct memory_source source;
	VEC(struct glibc_thread) threads;       /* the main thread is first */
	VEC(struct inspect_segment) segments;   /* ascending */
	VEC(struct addr_range) profiler;       /* mapped by ptmem */
	heap_block_fn *block;                   /* NULL = not wanted */
	heap_block_fn *python_block;            /* likewise: those of Python's allocator */
	void *block_ctx;
	bool has_go;                            /* a program in Go, with a heap of its own */
	bool only_blocks;                       /* only blocks are wanted: no rows, no pages */
	const struct pinned_paths *paths;       /* of blocks; NULL = they are not known */
	const struct touched_pages *touched;    /* NULL = not known; with types */
	bool wants_types;
	bool wants_holders;                     /* what points to blocks, by type; needs types */
	VEC(uint64_t) registers;                /* for that: words of all threads */
	bool wants_python;                      /* variables of Python's modules, likewise */
	bool wants_frames;                      /* of stacks, for that */
	VEC(struct holder_frame) frames;        /* innermost first, thread by thread */
};

/* Adds the segment [@start, @end). in->resident must be set. */
void inspect_add_segment(struct inspect_input *in, taddr_t start, taddr_t end);

/* Adds @count frames of a thread, innermost first: their code and their stack pointers. */
void inspect_add_frames(struct inspect_input *in, pid_t tid, const taddr_t *pc, const taddr_t *sp,
			size_t count);

void inspect_input_deinit(struct inspect_input *in);

/*
 * Breaks down the memory of a stopped process: what its resident and swapped pages contain, which
 * heap blocks are in use, and why free memory is not returned.
 *
 *	pages ---+--> heaps, chunk by chunk (glibc*.h) --+--> rows (account.h), which add up to
 *	memory --+--> Python's arenas (pymalloc.h) ------+    VmRSS and VmSwap
 *	threads -+--> stacks, TLS, data, files ----------+--> arenas, pinned pages, sizes of blocks
 *
 * Everything is read from the process and may be corrupt. Then part of a heap is reported as not
 * walked, and the rows still add up.
 */

/* What allocator_find found. */
struct inspect_allocator {
	const char *name;                       /* NULL = none */
	struct slab_sums sums;
	uint32_t caches, broken;
};

/* Shared memory of one name: of memfd_create(2), shm_open(3), shmget(2); "" = without one. */
struct inspect_shared {
	char *name;                             /* owned */
	struct inspect_bytes bytes;
};

struct inspect_report {
	struct inspect_bytes row[ROW_COUNT];
	VEC(struct inspect_shared) shared;      /* parts of ROW_SHARED; most bytes first */
	struct inspect_bytes all;               /* their sum */
	struct heap_report heaps;
	struct block_types types;               /* of all live blocks, if they were wanted */
	struct block_holders holders;           /* likewise; for block_holders_find */
	struct glibc_params params;
	struct inspect_allocator other;         /* than glibc's */
	struct python_report python;
	uint32_t heap_count;
	uint64_t mmapped_blocks, mmapped_bytes; /* bytes of these blocks */
	bool is_mmapped_complete;               /* all blocks that malloc has counted were found */
	uint32_t threads, caches;               /* threads; threads with a cache */
	uint32_t broken_lists;
	int64_t differing;                      /* as in struct resident */
	uint64_t bytes_read;
};

/* The caller frees the parts of @in with inspect_input_deinit. */
void inspect_run(const struct inspect_input *in, struct inspect_report *out);
/* Memory of an allocator other than glibc's that is in no block: its own data, and free memory. */
struct inspect_spare {
	VEC(struct addr_range) list; /* ascending */
};

/* @in: its memory, threads and segments. Nothing is found if the allocator's data contradict. */
void inspect_find_spare(const struct inspect_input *in, struct inspect_spare *out);

void inspect_report_deinit(struct inspect_report *r);

/*
 * Whether the data is consistent: every chunk on a list was found in a heap, and every list and
 * heap could be walked. If not, a thread was changing it, or it is corrupt.
 */
bool inspect_is_consistent(const struct inspect_report *r);

#endif
