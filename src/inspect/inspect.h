/*
 * The memory of a stopped process: of what its resident and swapped pages consist, which blocks of
 * the heap are in use, and why free memory is not returned.
 *
 *	pages ---+--> heaps, chunk by chunk (glibc*.h) --+--> rows (account.h), which add up to
 *	memory --+                                       |    VmRSS and VmSwap
 *	threads -+--> stacks, TLS, data, files ----------+--> arenas, pinned pages, sizes of blocks
 *
 * All of it is read from the process and may be corrupt: then a part of a heap is reported as not
 * followed, and the rows add up all the same.
 */
#ifndef PTMEM_INSPECT_INSPECT_H
#define PTMEM_INSPECT_INSPECT_H

#include "inspect/glibc_lists.h"
#include "inspect/heap_report.h"

/* A part of the program or a library, a PT_LOAD segment. */
struct inspect_segment {
	taddr_t start, end;
	bool is_write;
};

struct inspect_input {
	struct resident resident;
	struct memory_source source;
	VEC(struct glibc_thread) threads;       /* the main one is the first */
	VEC(struct inspect_segment) segments;   /* ascending */
	VEC(struct glibc_range) profiler;       /* mapped by ptmem */
	heap_block_fn *block;                   /* NULL = not wanted */
	void *block_ctx;
	bool only_blocks;                       /* they are all that is wanted: no rows, no pages */
};

struct inspect_report {
	struct inspect_bytes row[ROW_COUNT];
	struct inspect_bytes all;               /* their sum */
	struct heap_report heaps;
	struct glibc_params params;
	uint32_t heap_count;
	uint64_t mmapped_blocks, mmapped_bytes; /* bytes of the blocks */
	bool is_mmapped_complete;               /* as many were found as malloc says there are */
	uint32_t threads, caches;               /* threads; those of them that have a cache */
	uint32_t broken_lists;
	int64_t differing;                      /* as struct resident has it */
	uint64_t bytes_read;
};

/* Adds the segment [@start, @end); in->resident is there. */
void inspect_add_segment(struct inspect_input *in, taddr_t start, taddr_t end);

/* The parts of @in are the caller's to free, with inspect_input_deinit. */
void inspect_run(const struct inspect_input *in, struct inspect_report *out);
void inspect_report_deinit(struct inspect_report *r);
void inspect_input_deinit(struct inspect_input *in);

/*
 * Whether what was read fits together: every chunk on a list was found in a heap, every list and
 * heap could be followed. If not, a thread was changing it, or it is corrupt.
 */
bool inspect_is_consistent(const struct inspect_report *r);

#endif
